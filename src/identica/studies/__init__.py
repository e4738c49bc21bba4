"""A table of the paper is a list of experiments beside the published figures."""

from identica.studies.tables import Published, Row, load

__all__ = ["Published", "Row", "load"]
