"""An empty path, as of a variable that is not set, is refused: it would mean the current folder."""

from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest

from fyke import cli  # noqa: F401 - it adds the commands
from fyke.cli.app import app, path


def paths() -> list[Any]:
    """Every option and argument that is a path, with its command."""
    found = []
    for command in app.registered_commands:
        assert command.callback is not None
        for name, parameter in signature(command.callback).parameters.items():
            kind, *info = get_args(parameter.annotation) or (None,)
            if kind is Path or any(Path in (one, *get_args(one)) for one in get_args(kind)):
                found.append(pytest.param(info[0], id=f"{command.callback.__name__}-{name}"))
    return found


@pytest.mark.parametrize("asked", paths())
def test_no_path_is_empty(asked: Any) -> None:
    assert asked.parser is path


def test_all_of_them_are_tried() -> None:
    assert len(paths()) > 20
