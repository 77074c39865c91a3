"""The command `fyke` without its commands, and the options that several of them have."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import fyke
from fyke.cli import rooms
from fyke.cli.console import say

app = typer.Typer(
    help="A polite, crash-safe web crawler with bounded memory.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def not_empty(text: str) -> str:
    """Return the path that was typed. An empty one, as of a variable that is not set, would mean the current folder."""
    if not text:
        raise typer.BadParameter("it is empty: name a file or folder (. is the current one)")
    return text


def path(text: str) -> Path:
    """Return `text` as the path of an option or argument."""
    return Path(not_empty(text))


def of_this_format(folder: Path) -> Path:
    """Return `folder`. Raises OtherVersion if it holds a crawl that this Fyke cannot read."""
    rooms.directory.require_format(folder)
    return folder


Folder = Annotated[
    Path, typer.Argument(help="The directory of a crawl.", metavar="DIR", parser=path, callback=of_this_format)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]

Options = TypeVar("Options")


def asked_by(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Have a command take its many `options` as one value of that dataclass, whose fields are the options."""

    def decorated(command: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(options(**given))

        called.__signature__ = signature(options)  # type: ignore[attr-defined]  # Typer asks for it
        return called

    return decorated


def _version(asked: bool) -> None:
    if asked:
        say(f"fyke {fyke.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A polite, crash-safe web crawler with bounded memory."""
