"""Every example runs as its docstring says."""

import ast
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fyke as fyke_package
from crawl.runs import FAST, archived, crawl, fyke, settings
from fyke.archive.reading import read_table
from fyke.core.batches import url_batch
from fyke.core.plugins import BudgetFunction, load_plugin
from fyke.core.urls import key_of, locate
from fyke.lab.simweb import RobotsShares, RunningWeb, plain, running_web
from ports import free_port

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with running_web(plain(pages=40, hosts=2, requisites_per_page=2)) as running:
        yield running


@pytest.fixture
def plugged(tmp_path: Path, web: RunningWeb, monkeypatch: pytest.MonkeyPatch):
    """Crawls the web by `fyke crawl` with one plug-in of the examples."""
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    monkeypatch.chdir(tmp_path)

    def run(kind: str, reference: str, *options: str):
        return crawl(tmp_path / "there", settings(tmp_path, web, plugins={kind: [reference]}), *web.seeds, *options)

    return run


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "first_crawl.py"))
def test_without_arguments_it_says_how_it_is_used(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert done.returncode == 2 and not done.stdout and not [*tmp_path.iterdir()]
    assert done.stderr.startswith(f"usage: python examples/{name} ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_a_plugin_needs_fyke_alone(path: Path) -> None:
    """What it imports of Fyke is in `fyke.__all__`; `first_crawl` is no plug-in, and runs a web of its own."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    named = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    named |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert path.name == "first_crawl.py" or not [name for name in named if name.startswith("fyke.")]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "fyke"}
    assert path.name == "first_crawl.py" or used <= {*fyke_package.__all__}


def run_example(name: str, *arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True, text=True, timeout=60, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_plugin_examples_are_short(path: Path) -> None:
    assert path.name == "first_crawl.py" or len(path.read_text().splitlines()) < 60


def test_url_filter(plugged, monkeypatch: pytest.MonkeyPatch) -> None:
    run = plugged("filters", "url_filter:NoTraps")
    assert run.status == 0 and run.summary["pages"] > 10 and not run.summary["plugin_failures"]
    monkeypatch.syspath_prepend(EXAMPLES)
    from url_filter import NoTraps

    urls = [
        "http://a.org/",
        "http://a.org/x/y/x/y/x/y",
        "http://a.org/" + "x/y/" * 4,
        f"http://a.org/{'/'.join('abcdefghijklmn')}",
    ]
    accepted = NoTraps().accept(url_batch([locate(url) for url in urls]))
    assert accepted.dtype == np.bool_ and accepted.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("key", "reference"), [("budget", "budget_function:SquareRoot"), ("order", "crawl_order:ShortFirst")]
)
def test_frontier_plugins(
    tmp_path: Path, web: RunningWeb, monkeypatch: pytest.MonkeyPatch, key: str, reference: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    config = settings(tmp_path, web, frontier={key: reference})
    run = crawl(tmp_path / "there", config, *web.seeds, "--scope", "web")
    assert run.status == 0 and run.summary["pages"] == 40 and not run.summary["plugin_failures"]
    if key == "budget":
        rows = read_table(tmp_path / "there", "domains").to_pylist()
        assert all(row["budget"] == max(10, int(10 * row["in_degree"] ** 0.5)) for row in rows)


def test_signal_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three domains that stand equally high, the one whose linkers have nobody behind them has less."""
    known = [key_of(name) for name in ("farm.test", "few.test", "good.test")]
    columns = {"key": pa.array(known, pa.uint64()), "linkers": [50, 5, 50], "independence": [0.01, 0.01, 0.8]}
    pq.write_table(pa.table(columns), tmp_path / "ranks.parquet")
    monkeypatch.setenv("DOMAINRANK", str(tmp_path / "ranks.parquet"))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    function = load_plugin("signal_budget:SignalBudget", "budgets", BudgetFunction)
    keys = np.array([*known, 1], np.uint64)
    budgets = function.budgets(keys, np.full(4, 50, np.uint64), np.full(4, 0.5))
    assert budgets.tolist() == [2, 5005, 5005, 5005]


def test_tag_statistics(tmp_path: Path, plugged) -> None:
    run = plugged("processors", "tag_statistics:TagStatistics", "--requisites")
    assert run.status == 0 and not run.summary["plugin_failures"]
    assert "<a>" in run.errors and "images below" in run.errors


def test_page_sink(tmp_path: Path, web: RunningWeb, plugged) -> None:
    run = plugged("sinks", "page_sink:JsonLines")
    rows = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert run.status == 0 and not run.summary["plugin_failures"]
    assert [row["url"] for row in rows] == archived(tmp_path / "there")
    assert all(row["title"] and row["text"] and "<" not in row["text"] for row in rows)


def test_protocol_module(tmp_path: Path) -> None:
    """From a folder into an archive, without a server; what lies outside the folder stays there."""
    mirror = tmp_path / "mirror" / "127.0.0.1"
    mirror.mkdir(parents=True)
    (tmp_path / "mirror" / "secret").write_text("secret")
    (mirror / "robots.txt").write_text("User-agent: *\nDisallow: /private\n")
    (mirror / "index.html").write_text(
        "<title>Old</title><a href=a.txt>a</a> <a href=private.html>p</a> <a href=%2e%2e%2fsecret>s</a>"
    )
    (mirror / "a.txt").write_text("text")
    (mirror / "private.html").write_text("private")
    out = run_example("protocol_module.py", "mirror", "http://127.0.0.1/", "there", folder=tmp_path)
    assert "http://127.0.0.1/ Old" in out
    assert sorted(archived(tmp_path / "there")) == ["http://127.0.0.1/", "http://127.0.0.1/a.txt"]


def test_as_programs(tmp_path: Path) -> None:
    """Each with a URL and a folder, in its default manners; the site is this machine's."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>Here</title><p>text")
    handler = partial(Quiet, directory=tmp_path / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        with ThreadPoolExecutor() as pool:
            said = dict(zip(PROGRAMS, pool.map(lambda name: run_program(name, url, tmp_path), PROGRAMS), strict=True))
        server.shutdown()
    assert f"{url} Here" in said["iterate_pages.py"] and "finished" in said["iterate_pages.py"]
    assert "<title>" in said["tag_statistics.py"]
    assert url in said["url_filter.py"] and url in said["crawl_order.py"]
    assert "127.0.0.1" in said["budget_function.py"] and "1 pages" in said["budget_function.py"]
    assert json.loads((tmp_path / "lines").read_text())["text"] == "text"


PROGRAMS = {
    "iterate_pages.py": [],
    "tag_statistics.py": [],
    "url_filter.py": [],
    "page_sink.py": ["lines"],
    "budget_function.py": [],
    "crawl_order.py": [],
}


def run_program(name: str, url: str, folder: Path) -> str:
    return run_example(name, url, name, *PROGRAMS[name], folder=folder)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_first_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """It crawls and says what to do next; called again it says it is done; a folder in use is left alone."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    import first_crawl

    before = signal.getsignal(signal.SIGINT)
    robots = RobotsShares(sections=1.0)
    monkeypatch.setattr(first_crawl, "lively", lambda **ports: plain(robots_shares=robots, **ports))
    monkeypatch.setattr(first_crawl, "SIZE", {"pages": 40, "hosts": 3})
    monkeypatch.setattr(first_crawl, "PORTS", (free_port(), free_port()))
    monkeypatch.setitem(first_crawl.HASTE, "politeness", FAST)
    try:
        assert first_crawl.main("demo") == 0
        first = capfd.readouterr()
        assert first_crawl.main("demo") == 0
        again = capfd.readouterr()
        monkeypatch.setattr(first_crawl, "free", lambda ports: False)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "mine").write_text("mine")
        assert first_crawl.main("other") == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert "finished: nothing is left" in first.err
    assert re.search(r"\d+ pages? for 'river'", first.out) and (tmp_path / "demo" / "report.html").is_file()
    assert "finished before" in again.err
    refused = re.search(r"fyke why demo (\S+)", first.out)
    assert refused and "robots.txt forbids it" in fyke("why", "demo", *shlex.split(refused[1])).stdout
    query = re.search(r"python -c \"(.+)\"", first.out)
    assert query
    told = subprocess.run(
        [sys.executable, "-c", query[1].replace("\\", "")], capture_output=True, text=True, check=True
    )
    assert "text/html" in told.stdout
    assert "other is taken" in capfd.readouterr().out
    assert (tmp_path / "other-2" / "fyke.toml").is_file() and len(list((tmp_path / "other").iterdir())) == 1
