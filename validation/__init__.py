"""Is it right? Checks that are too long for the tests."""
