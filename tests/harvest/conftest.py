"""Answers made by hand, and what the parser makes of them."""

from collections.abc import Callable

import pytest

from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser

URL = "http://example.com/dir/page.html"


def make_answer(
    url: str = URL,
    media_type: str = "text/html; charset=utf-8",
    *,
    fields: str = "",
    status: int = 200,
    outcome: Outcome = Outcome.OK,
) -> Exchange:
    """An exchange as HTTP would have brought it; without a header for ftp and gopher."""
    visit = visit_to(url)
    if not url.startswith("http"):
        return Exchange(visit, outcome, 0.0, 0.0)
    lines = [f"HTTP/1.1 {status} Whatever", "Server: a fake"]
    if media_type:
        lines.append(f"Content-Type: {media_type}")
    lines += [line for line in fields.split("\n") if line]
    return Exchange(visit, outcome, 0.0, 0.0, status=status, head="\r\n".join([*lines, "", ""]).encode())


@pytest.fixture(scope="session")
def answer() -> Callable[..., Exchange]:
    return make_answer


@pytest.fixture(scope="session")
def read() -> Callable[..., Page]:
    """Parse `content` as the answer the other arguments describe."""
    parsers = {needed: Parser(requisites=needed) for needed in (False, True)}

    def parse(content: bytes | str, *args: str, requisites: bool = False, **kwargs: object) -> Page:
        data = content.encode() if isinstance(content, str) else content
        return parsers[requisites].parse(make_answer(*args, **kwargs), data)  # type: ignore[arg-type]

    return parse
