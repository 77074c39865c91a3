"""What hides, or steers, is shown nowhere; what joins letters is part of words."""

import pytest

from fyke.core import terminal
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, visit_to
from fyke.export.prose import plain
from fyke.harvest import Parser
from fyke.report.shown import shown
from fyke.search.lines import one_line

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"


def written(text: str) -> dict[str, str]:
    """`text` as each who shows or keeps it has it."""
    exchange = Exchange(visit_to("http://a.example/"), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    exported = plain(Parser(shared=True).parse(exchange, text.encode()))
    return {"terminal": terminal.clean(text), "index": one_line(text, 99), "export": exported, "report": shown(text)}


@pytest.mark.parametrize(
    "sign", ["\x00", "\x1b", "\x9b", "\u061c", "\u200b", "\u202e", "\u2066", "\ufeff", "\U000e0041"]
)
def test_what_hides_is_shown_nowhere(sign: str) -> None:
    assert [name for name, text in written(f"gnp{sign}.exe").items() if sign in text] == []


def test_what_joins_letters_stays() -> None:
    word = "می\u200cخواهم"
    assert {name for name, text in written(word).items() if text == word} == {"terminal", "index", "export"}
