"""The positional arguments of a bench. `--help` prints the bench's own first page."""

import argparse
from typing import Any


def arguments(page: str | None, **defaults: Any) -> tuple[Any, ...]:
    """Return the command line's values in the order of `defaults`, each of the type of its default.

    A default that is itself a type must be given; a list takes all that follow. Whole numbers may be written as 1e8.
    """
    parser = argparse.ArgumentParser(description=page, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        if isinstance(default, list):
            parser.add_argument(name, nargs="*", default=default)
        elif isinstance(default, type):
            parser.add_argument(name, type=default)
        else:
            parser.add_argument(
                name, nargs="?", type=_whole if isinstance(default, int) else type(default), default=default
            )
    return tuple(vars(parser.parse_args()).values())


def _whole(text: str) -> int:
    return int(float(text))
