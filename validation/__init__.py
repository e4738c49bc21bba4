"""Is it right? Checks that take longer than a test: `python -m validation.NAME`."""
