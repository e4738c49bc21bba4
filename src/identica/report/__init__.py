"""HTML pages and the figures on them."""
