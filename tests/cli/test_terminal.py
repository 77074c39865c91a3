"""What strangers write cannot steer the terminal of whoever asks about it."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from fyke import cli
from fyke.cli.console import AnswerOutput, Reporter, say, say_aside
from fyke.core.terminal import clean

STEERING = "\x1b[2J\x1b]0;title\x07\x9b31m\u202eturned\u200b\x08\r\x7f\u3164\U000e0041"
HARMFUL = set("\x1b\x07\x9b\u202e\u200b\x08\r\x7f\u3164\U000e0041")


def test_an_answer_is_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"robots.txt forbids it in line 3: Disallow: /{STEERING}\nnext\tline")
    out = capsys.readouterr().out
    assert HARMFUL.isdisjoint(out) and "next\tline" in out and "forbids" in out


def test_asides_and_complaints_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    say_aside(STEERING)
    with pytest.raises(SystemExit):
        cli._complain(f"http://h/{STEERING} is no URL", 2)
    assert HARMFUL.isdisjoint(capsys.readouterr().err)


@pytest.mark.parametrize("kind", [AnswerOutput, Reporter])
def test_a_panel_is_cleaned_and_still_coloured(kind: type[Reporter]) -> None:
    out = io.StringIO()
    console = kind(file=out, force_terminal=True, width=200)
    console.print(Panel(Text(STEERING, style="bold"), title=escape(STEERING)), STEERING)
    plain = out.getvalue()
    assert "\x1b[1m" in plain, "its own colours"
    assert "\x1b[2J" not in plain and "\x1b]" not in plain
    assert (HARMFUL - {"\x1b"}).isdisjoint(plain)


@pytest.mark.parametrize("kind", [AnswerOutput, Reporter])
def test_a_part_of_a_url_is_not_drawn(kind: type[Reporter]) -> None:
    out, url = io.StringIO(), "http://h:80/12:man:30"
    kind(file=out, width=200).print(url, Panel(url), markup=False)
    assert out.getvalue().count(url) == 2


@given(st.text(st.characters()))
def test_what_is_clean_stays_and_is_printable(text: str) -> None:
    once = clean(text)
    assert clean(once) == once == once.encode().decode() and len(once) == len(text)
    assert all(character in "\n\t" or character >= " " for character in once)
