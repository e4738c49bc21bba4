"""Messages of the library in terms of the command line: --missing drop for missing="drop"."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from shlex import quote

# parameters whose options have other names
ALIASES = {
    "n_components": "components",
    "learn_precision": "precision",
    "random_state": "seed",
    "X_pos": "positives",
    "X": "data",
}


def words_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What a command calls each parameter that has an option."""
    known = {
        action.dest: action.option_strings[-1] if action.option_strings else str(action.metavar)
        for action in parser._actions
    }
    options = {name: word for name, word in known.items() if word.startswith("--")}
    return options | {name: known[dest] for name, dest in ALIASES.items() if dest in known}


def in_shell(message: object, words: Mapping[str, str]) -> str:
    """A message with parameters replaced by options.

    A word counts as a parameter if it begins the message, is followed by "=", or is listed with others;
    names that are not English words always do.

    >>> words = {"missing": "--missing", "groups": "--groups", "lag": "--lag", "X": "DATA"}
    >>> in_shell('missing must be "raise"; missing="drop" drops rows of X', words)
    '--missing must be "raise"; --missing drop drops rows of DATA'
    >>> in_shell("lag and groups must not be given", words)
    '--lag and --groups must not be given'
    """
    if not words:
        return str(message)
    name = "|".join(sorted(words, key=len, reverse=True))
    alone = rf"(?<![\w/.'\"-])({name})(?![\w/'\"-]|\.\w)"

    def assigned(found: re.Match[str]) -> str:
        option, text, word = words[found[1]], found[2], found[3]
        value = word if text is None else quote(text)
        if value in ("True", "False"):
            return option if value == "True" else f"no {option}"
        return f"{option} {value}" if value else option

    def each(found: re.Match[str]) -> str:
        return re.sub(alone, lambda part: words[part[1]], found[0])

    text = re.sub(rf"{alone}=(?:\"([^\"]*)\"|([\w.]+(?<!\.)))?", assigned, str(message))
    text = re.sub(rf"{alone}(?:, (?:{name})\b)*,? (?:and|or) (?:{name})\b", each, text)
    text = re.sub(rf"^{alone}(?=[ :])", each, text)
    strange = [word for word in words if "_" in word or word == "X"]
    return re.sub(alone, lambda part: words[part[1]] if part[1] in strange else part[0], text)
