"""The planner's answers: the paper's figures, and what must hold of any answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fyke.core.errors import ConfigurationError
from fyke.lab.plan.planner import Bound, Plan, plan
from fyke.lab.plan.question import Question, read
from fyke.lab.plan.report import sentences, text

QUESTIONS = st.builds(
    Question,
    pages=st.floats(1, 1e15),
    links_per_page=st.floats(1, 1000),
    unique_share=st.floats(0.001, 1),
    unique_links_per_page=st.floats(1, 1000),
    pages_s=st.floats(0.1, 1e6),
    memory_bytes=st.floats(1e8, 1e13),
    given_bucket_bytes=st.none() | st.floats(1e6, 1e16),
    disk_bytes_s=st.floats(1e6, 1e11),
    check_share=st.floats(0.01, 1),
    network_bytes_s=st.floats(1e4, 1e11),
)


def asked(**options: str) -> Plan:
    return plan(read({f"--{name.replace('_', '-')}": text for name, text in options.items()}))


def in_words(answer: Plan) -> str:
    return " ".join(sentences(answer))


def test_theorem_3_as_worked_in_the_paper() -> None:
    drum, mercator_b, polybot = asked(pages="8T").methods
    assert int(drum.disk_pages_s) == 4192
    assert round(mercator_b.disk_pages_s, 1) == 1.4
    assert round(polybot.disk_pages_s, 1) == 0.2


def test_what_is_stored() -> None:
    """IRLbot's own crawl: 6.38 billion pages, 41.5 billion URLs seen that took 332 GB, 21.2 kB a page."""
    answer = asked(pages="6.38e9", known="1", archived="1")
    assert answer.methods[0].seen_bytes == pytest.approx(332e9, rel=0.01)
    assert answer.archive_bytes == pytest.approx(135e12, rel=0.01)
    assert answer.queue_bytes == pytest.approx(110 * 35e9, rel=0.01)  # "35B URLs not crawled", section 1.2


def test_memory_that_a_small_disk_cannot_use_is_not_asked_for() -> None:
    drum = asked(memory="64GB", disk="1TB").methods[0]
    assert drum.batch_bytes == 1e12
    assert drum.memory_bytes == pytest.approx(456e6, rel=0.01)
    assert asked(memory="1GB", disk="100TB").methods[0].batch_bytes == pytest.approx(4.80e12, rel=0.001)


def test_unique_links_follow_from_links_and_share_where_these_are_given() -> None:
    assert read({}) == Question()
    assert read({"--links": "20"}).unique_links_per_page == pytest.approx(20 / 9)
    assert read({"--unique": "0.2"}).unique_links_per_page == pytest.approx(59 / 5)
    assert read({"--links": "20", "--unique-links": "6.5"}).unique_links_per_page == 6.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"--memory": "95MB"}, "--memory 95 MB: too little .* at least 96 MB"),
        ({"--links": "5"}, "0.556 new URLs a page"),
        ({"--pages": "0.5"}, "not a crawl"),
    ],
)
def test_a_question_without_answer(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read(options)


def test_what_binds_is_said() -> None:
    assert "Neither holds back the 3,100 you ask for: 8 billion pages take 29.9 days." in in_words(asked())
    network = asked(rate="6000", pages="800M", network="100Mbit/s")
    assert network.methods[0].bound is Bound.NETWORK
    assert "The network is what binds, so not 6,000 but 590, " in in_words(network)
    assert "1.02 Gbit/s would do for 6,000." in in_words(network)
    disk = asked(rate="6000", pages="8T", network="10Gbit/s")
    assert disk.methods[0].bound is Bound.DISK
    assert "keeps up with 4,192 pages/s" in in_words(disk)
    assert "145 MB/s for URL checks alone would do for 6,000." in in_words(disk)


@given(question=QUESTIONS)
def test_what_would_do_does(question: Question) -> None:
    """Laws: the slowest limit binds, and each method keeps up with what it asks of the disk."""
    answer = plan(question)
    for method in answer.methods:
        assert method.pages_s == min(question.pages_s, answer.network_pages_s, method.disk_pages_s)
        assert method.crawl_s >= method.checks_s * 0.999_999 or method.bound is not Bound.DISK
        assert (method.disk_share_needed > question.check_share) == (method.disk_pages_s < question.pages_s)
        assert 0 < method.memory_bytes <= question.memory_bytes
    assert answer.budgets.beast_bytes_s <= answer.budgets.beast_limit_bytes_s * 1.000_001


@given(question=QUESTIONS)
def test_any_answer_can_be_read(question: Question) -> None:
    answer = plan(question)
    plain = text(answer, Console(force_terminal=False))
    assert plain.isascii() and "nan" not in plain and "inf" not in plain
    assert len(plain.splitlines()) > 20


def test_a_terminal_gets_colours_and_a_pipe_does_not() -> None:
    terminal = Console(force_terminal=True, width=110, color_system="standard")
    shown = text(asked(), terminal)
    assert "\x1b[32m" in shown and "\x1b[31m" in shown
    assert "\x1b" not in text(asked(), Console(force_terminal=False))


def test_fits_a_terminal_of_80_columns() -> None:
    shown = text(asked(), Console(force_terminal=True, width=80, color_system=None))
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert "2.71" in shown and "13.6" in shown and "188" in shown
