"""identica completion bash | zsh | fish"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from shlex import quote

from identica.cli.arguments import subcommands, suggested

HOW = """\
To complete commands with Tab, add one of these lines to the start-up file of your shell:

  bash  ~/.bashrc                     eval "$(identica completion bash)"
  zsh   ~/.zshrc, after compinit      eval "$(identica completion zsh)"
  fish  ~/.config/fish/config.fish    identica completion fish | source
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = "Print a script that completes commands, options and names in a shell."
    parser.epilog = HOW
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell")
    parser.set_defaults(run=_completion)


def _completion(args: argparse.Namespace) -> int:
    from identica.cli import parser

    print(SHELLS[args.shell](parser()))
    return 0


def commands(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ("identica",)
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every command as words, with its parser."""
    yield path, parser
    for name, _, made in subcommands(parser):
        yield from commands(made, (*path, name))


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options of a command."""
    return [action for action in parser._actions if action.option_strings]


def words(parser: argparse.ArgumentParser) -> list[str]:
    """What may follow a command, other than options: its subcommands, or values of its arguments."""
    names = [name for name, _, _ in subcommands(parser)]
    if names:
        return names
    given = [action for action in parser._actions if not action.option_strings]
    return [word for action in given for word in suggested(action)]


def bash(top: argparse.ArgumentParser) -> str:
    """A function that finds the command typed so far, and completes files where it knows no words."""
    every = list(commands(top))
    known = " | ".join(quote(" ".join(path)) for path, _ in every[1:])
    lines = [
        "_identica() {",
        "    local command=identica word words options before=${COMP_WORDS[COMP_CWORD-1]}",
        "    local current=${COMP_WORDS[COMP_CWORD]}",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        f'        case "$command $word" in {known}) command="$command $word" ;; esac',
        "    done",
        '    case "$command" in',
    ]
    for path, parser in every:
        flags = [flag for action in options(parser) for flag in action.option_strings]
        told = f"words={quote(' '.join(words(parser)))} options={quote(' '.join(flags))}"
        lines.append(f"        {quote(' '.join(path))}) {told} ;;")
    lines += ["    esac", '    case "$command $before" in']
    for path, parser in every:
        for action in options(parser):
            values = " ".join(suggested(action)) if action.nargs != 0 else ""
            if action.nargs != 0:  # files, where no values are known
                flags = [quote(" ".join((*path, flag))) for flag in action.option_strings]
                lines.append(f"        {' | '.join(flags)}) words={quote(values)} options= ;;")
    lines += [
        "    esac",
        "    [[ $current == -* ]] && words=$options",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -F _identica identica",
    ]
    return "\n".join(lines)


def zsh(top: argparse.ArgumentParser) -> str:
    """The function for bash, which zsh can use."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash(top)}"


def fish(top: argparse.ArgumentParser) -> str:
    """A line for each word that may come next, with what it means."""
    lines = []
    for path, parser in commands(top):
        below = list(subcommands(parser))
        seen = [f"__fish_seen_subcommand_from {name}" for name in path[1:]]
        if below:
            names = " ".join(name for name, _, _ in below)
            seen.append(f"not __fish_seen_subcommand_from {names}")
        start = f"complete -c identica -n {_fish('; and '.join(seen) or 'true')}"
        for name, summary, _ in below:
            lines.append(f"{start} -f -a {_fish(name)} -d {_fish(summary)}")
        if not below and words(parser):
            lines.append(f"{start} -f -a {_fish(' '.join(words(parser)))}")
        for action in options(parser):
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in action.option_strings
            )
            values = suggested(action)
            more = (
                ""
                if action.nargs == 0
                else f" -x -a {_fish(' '.join(values))}"
                if values
                else " -r"
            )
            told = (action.help or "").partition(" (default")[0]
            lines.append(f"{start} {flags}{more} -d {_fish(told)}")
    return "\n".join(lines)


def _fish(text: str) -> str:
    """A word in quotes, as fish reads them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
