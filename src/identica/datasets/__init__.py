"""Data sets: rendered, rebuilt or read from disk, one module each."""
