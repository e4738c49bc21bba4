"""Errors that users meet."""

from __future__ import annotations


class InputError(ValueError):
    """Invalid input. The message names the argument and the expected value."""


class DamagedError(InputError):
    """The checkpoint of a run is damaged, or belongs to another run."""


class NonFiniteLossError(ArithmeticError):
    """The loss, its gradient or a parameter became NaN or infinite."""


class LostProcessError(RuntimeError):
    """Another process of the group died or cannot be reached."""


class TrustWarning(UserWarning):
    """A fit succeeded, but its codes cannot be trusted."""
