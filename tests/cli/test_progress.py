"""What is said of a long command: in a pipe a line now and then if that is wanted, on a terminal one that is gone."""

from io import StringIO

import pytest
from rich.console import Console

from fyke.progress import Progress


@pytest.mark.parametrize(("pipe_s", "said"), [(0.0, ""), (1e-9, "reading: 1 of 3 pages\nreading: 2 of 3 pages\n")])
def test_in_a_pipe(pipe_s: float, said: str) -> None:
    out = StringIO()
    with Progress(Console(file=out, force_terminal=False), "reading", pipe_s=pipe_s) as progress:
        for done in (1, 2):
            progress.tell("reading", done, 3, "pages")
    assert out.getvalue() == said and progress.steps == 2


def test_on_a_terminal_nothing_stays() -> None:
    out = StringIO()
    with Progress(Console(file=out, force_terminal=True, width=80), "reading") as progress:
        progress.tell("reading", 1, 3)
    assert "reading" in out.getvalue() and out.getvalue().endswith("\x1b[2K")  # the line is taken away
