"""Commands of Fyke, run in the process of a test: what they do not catch fails it."""

import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from unittest.mock import patch

from fyke.cli import main


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    status: int
    out: str
    errors: str


def in_process(*arguments: str) -> Said:
    """Run `fyke` with `arguments`."""
    out, errors = (TextIOWrapper(BytesIO(), "utf-8", newline="", write_through=True) for _ in range(2))
    try:
        with patch.object(sys, "argv", ["fyke", *arguments]), redirect_stdout(out), redirect_stderr(errors):
            main()
    except SystemExit as end:
        told = [one.buffer.getvalue().decode() for one in (out, errors)]
        return Said(int(end.code or 0), *told)
    raise AssertionError("a command ends with its exit status")


def told(status: int, arguments: list[str], words: list[str]) -> None:
    """Run it with a mistake in the `arguments`: it must end with `status` and one line, which has all of `words`."""
    said = in_process(*arguments)
    assert said.status == status and not said.out, said
    (line,) = said.errors.splitlines()
    assert line.startswith("fyke: ") and all(word in line for word in words), line
    assert "secret" not in line and len(line) < 5000
