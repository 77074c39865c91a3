"""The manual, made from the commands themselves: `python -m fyke.cli.manual DIR` writes what a package installs.

    fyke.1                          the page for man(1)
    fyke.bash, _fyke, fyke.fish     what completes commands and options in shells

The documentation's reference is made from `described` too. Invariant: nothing here says what a command does; all text
comes from the commands' `--help`.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from fyke import cli  # noqa: F401 - it adds the commands
from fyke.cli.app import app
from fyke.core.version import VERSION

SHELLS = {"bash": "fyke.bash", "zsh": "_fyke", "fish": "fyke.fish"}


class Described(NamedTuple):
    """A command, as its `--help` shows it."""

    name: str
    usage: str
    text: list[tuple[str, bool]]  # paragraphs, and whether their lines stay as they are
    options: list[tuple[str, str]]  # how each is written, and its help


def described() -> list[Described]:
    """Return every command, in the order of `fyke --help`."""
    group: Any = typer.main.get_command(app)
    return [_described(name, command) for name, command in group.commands.items()]


def _described(name: str, command: Any) -> Described:
    context = command.make_context(f"fyke {name}", [], resilient_parsing=True)
    paragraphs = [(part.removeprefix("\b\n"), part.startswith("\b")) for part in command.help.split("\n\n")]
    paragraphs = [(part if kept else " ".join(part.split()), kept) for part, kept in paragraphs]
    options = [record for one in command.params if (record := one.get_help_record(context))]
    return Described(name, " ".join([f"fyke {name}", *command.collect_usage_pieces(context)]), paragraphs, options)


def man_page(commands: Sequence[Described]) -> str:
    """Return the page for man(1), in roff."""
    return "\n".join([_head(), *(line for one in commands for line in _section(one)), _foot()])


def _head() -> str:
    group: Any = typer.main.get_command(app)
    return (
        f'.TH FYKE 1 "" "fyke {VERSION}" "Fyke"\n.SH NAME\nfyke \\- {_roff(group.help.rstrip(".").lower())}\n'
        ".SH SYNOPSIS\n.B fyke\n.I COMMAND\n[\\fIOPTIONS\\fR] ...\n.br\n.B fyke\n.I COMMAND\n\\-\\-help\n.SH COMMANDS"
    )


def _section(one: Described) -> Iterator[str]:
    yield f".SS {_roff(one.usage)}"
    for text, kept in one.text:
        yield f".PP\n.nf\n{_roff(text)}\n.fi" if kept else f".PP\n{_roff(text)}"
    for written, said in one.options:
        yield f".TP\n.B {_roff(written)}\n{_roff(said)}"


def _foot() -> str:
    return (
        ".SH FILES\n.TP\n.I DIR/fyke.toml\nThe settings of a crawl: every key that can be set, with a sentence for each"
        ".\n.TP\n.I DIR/warc, DIR/tables\nThe archive and its tables; DIR/state is what a restart needs.\n"
    )


def _roff(text: str) -> str:
    """Return `text` as roff prints it: no line of it is a request, no hyphen becomes another sign."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def main(folder: Path) -> None:
    """Write all of it into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fyke.1").write_text(man_page(described()), encoding="utf-8")
    for shell, name in SHELLS.items():
        script = get_completion_script(prog_name="fyke", complete_var="_FYKE_COMPLETE", shell=shell)
        (folder / name).write_text(f"{script}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
