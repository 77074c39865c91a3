"""`fyke plan`: the paper's figures from the command line, pictures in three formats, and one line for each mistake."""

import json
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.image import imread
from paper_tables import TABLE_2, Printed

from commands import Said, in_process, told
from fyke.lab.plan.question import Question
from fyke.plots import BLUE, GREEN, ORANGE, RED


def plan(*arguments: str) -> Said:
    return in_process("plan", *arguments)


@pytest.mark.parametrize(("pages", "mercator_b", "polybot", "drum"), TABLE_2)
def test_a_row_of_table_2(pages: float, mercator_b: str, polybot: str, drum: str) -> None:
    said = plan("--pages", f"{pages:g}", "--memory", "1GB", "--disk", "4.39TB", "--json")
    methods = {method["method"]: method["overhead"] for method in json.loads(said.out)["methods"]}
    assert said.status == 0
    for name, digits in (("DRUM", drum), ("Mercator-B", mercator_b), ("Polybot", polybot)):
        assert Printed(name, digits, methods[name]).agrees


def test_defaults_are_the_papers() -> None:
    answer = json.loads(plan("--json").out)
    question = Question(**answer["question"])
    assert question == Question()
    assert answer["budgets"]["beast_queues"] == 16
    assert answer["budgets"]["naive_bytes_s"] == pytest.approx(82.67e6, rel=0.001)


def test_plain_text() -> None:
    said = plan("--pages", "8e12")
    assert re.search(r"the disk keeps up with, pages/s +4,192 +1\.36 +0\.189\n", said.out)
    assert "With DRUM the disk keeps up with 4,192 pages/s" in said.out
    assert "\x1b" not in said.out and not said.errors


def test_what_is_given_is_said_as_it_was() -> None:
    said = plan("--pages", "1234567", "--rate", "12345.6", "--memory", "1.23456GB", "--links", "59.125").out
    assert said.startswith("1.234567 million pages with 59.125 links each, 1.23456 GB of memory,")
    assert "at most 12,345.6 pages/s" in said and "12,346 " not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--memory", "8Q"], "--memory 8Q: not a size; write 8GB"),
        (["--pages", "many"], "--pages many: not a number"),
        (["--speed", "675"], "--speed 675: not a speed; write 675MB/s"),
        (["--share", "15"], "--share 15: not a share"),
        (["--plot", "plan.gif"], "plan.gif: not a kind of picture Fyke writes; end the name in .png, .svg or .pdf"),
        (["--plot", "plan"], "plan: not a kind of picture"),
        (["--plot", "nowhere/plan.png"], "nowhere/plan.png: No such file or directory; name a file"),
        (["--speeed", "1MB/s"], "no such option"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    told(2, ["plan", *arguments], [words])
    assert not list(tmp_path.iterdir())


def drawn(path: Path) -> bytes:
    said = plan("--plot", str(path))
    assert (said.status, said.errors) == (0, "")
    assert "URL checks" in said.out
    return path.read_bytes()


def test_picture_of_pixels(tmp_path: Path) -> None:
    drawn(tmp_path / "plan.png")
    pixels = imread(tmp_path / "plan.png")[:, :, :3]
    ink = pixels.min(axis=2) < 0.9
    assert pixels.shape[1] > 1500 and 0.01 < ink.mean() < 0.3
    for half in np.array_split(pixels, 2, axis=1):  # something in colour in either panel
        assert ((half.max(axis=2) - half.min(axis=2)) > 0.4).sum() > 1000


def test_picture_of_lines(tmp_path: Path) -> None:
    svg = drawn(tmp_path / "plan.svg").decode()
    for words in ("Checking which URLs are new", "Keeping every domain within its budget", "10 GB/s"):
        assert f"<!-- {words} -->" in svg  # as the shapes of its letters, so that it looks the same everywhere
    for colour in (BLUE, ORANGE, RED, GREEN):
        assert f"stroke: {colour}" in svg


def test_picture_for_print(tmp_path: Path) -> None:
    pdf = drawn(tmp_path / "PLAN.PDF")
    assert pdf.startswith(b"%PDF-")
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    page = max(
        (zlib.decompress(stream) for stream in streams if stream[:1] == b"x"), key=lambda text: text.count(b" l\n")
    )
    assert page.count(b" l\n") > 500  # the points of five curves


def test_the_same_picture_is_the_same_bytes_and_nothing_global_is_touched(tmp_path: Path) -> None:
    before = rcParams.copy()
    for kind in ("svg", "pdf", "png"):
        assert drawn(tmp_path / f"one.{kind}") == drawn(tmp_path / f"two.{kind}")
    assert rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules
