"""What callers get who leave options out: another default would change their results in silence."""

import inspect


def numbers_of(function):
    """The defaults of a function or class that are numbers or tuples, by name."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if type(parameter.default) in (int, float, tuple)
    }
