"""What is asked of the tables of a crawl, in SQL."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from fyke.report.sql import Questions
from search.archives import Answer, Archive

GROUPS = """
from pathlib import Path
import sys
from fyke.core.memory import peak_memory_bytes
from fyke.report.sql import Questions
with Questions(Path(sys.argv[1])) as questions:
    questions.ask("select 1")
    before = peak_memory_bytes()
    asked = "select count(*), max(n) from (select range, count(*) n from range(6_000_000) group by range)"
    print(questions.ask(asked)[0][0], peak_memory_bytes() - before)
"""


def test_a_question_takes_bounded_memory(tmp_path: Path) -> None:
    """However many rows it groups; what does not fit goes to disk."""
    made = Archive(tmp_path / "crawl")
    made.visit("http://a.example/", Answer("<p>a</p>"))
    made.close()
    told = subprocess.run(
        [sys.executable, "-c", GROUPS, str(tmp_path / "crawl")], capture_output=True, text=True, check=True
    )
    groups, taken_bytes = map(int, told.stdout.split())
    assert groups == 6_000_000 and taken_bytes < 200 << 20


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
