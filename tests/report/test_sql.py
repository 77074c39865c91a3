"""What is asked of the tables of a crawl, in SQL."""

import os
import signal
from pathlib import Path
from threading import Timer

import pytest

from fyke.report.sql import Questions
from search.archives import Answer, Archive


def test_ctrl_c_in_a_question_is_ctrl_c(tmp_path: Path) -> None:
    """Whatever DuckDB's threads do just then: of twenty, some would wait for ever for one that did not hear it."""
    made = Archive(tmp_path / "crawl")
    made.visit("http://a.example/", Answer("<p>a</p>"))
    made.close()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever began the tests may ignore it
    with Questions(tmp_path / "crawl") as questions:
        for number in range(20):
            timer = Timer(0.01 * number, os.kill, (os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                timer.start()
                questions.ask("select sum(range) from range(10000000000000)")
            timer.join()
        assert questions.ask("select 1") == [(1,)]
    signal.signal(signal.SIGINT, before)
