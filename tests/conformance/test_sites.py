"""The small sites of other crawlers' tests: served on loopback, crawled in one go, compared with what is there."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from mimetypes import guess_type
from pathlib import Path
from typing import NamedTuple

from conformance.oracles import ORACLES, judge
from crawl.runs import Run, crawl, settings
from crawl.small_site import SmallSite, small_site
from fyke.archive.reading import read_table

SEEDS = {"StatisticsSelfTest": ["a.html", "b.html"], "Precedence3SelfTest": ["H.html"]}  # else index.html, seed.html

_FORM = "only a form that is sent leads there"
POLICY = {
    "BadURIsStopPageParsingSelfTest: goodtwo.html": "its base is another host; Heritrix does not reach it either",
    "FlashParseSelfTest: success.html": "only a Flash movie leads there",
    "HttpAuthSelfTest: success.html": _FORM,
    "HttpAuthSelfTest: failure.html": _FORM,
    "FormAuthSelfTest: success.html": _FORM,
    "FormAuthSelfTest: failure.html": _FORM,
    **{f"FormLoginSelfTest: {name}.html": _FORM for name in ("success", "failure", "link1", "link2", "link3")},
    "fetch-test-site: exception.html": "no page links to it",
    "fetch-test-site: nested_spider_trap.html": "no page links to it",
}


class Site(NamedTuple):
    """A folder on an address of its own."""

    name: str
    files: dict[str, Path]
    server: SmallSite

    def seeds(self) -> list[str]:
        begin = next((name for name in ("index.html", "seed.html") if name in self.files), "")
        return [f"{self.server.url}{name}" for name in SEEDS.get(self.name, [begin])]


def folders() -> dict[str, Path]:
    heritrix = {path.parent.name: path for path in (ORACLES / "heritrix-selftest").glob("*/htdocs")}
    return heritrix | {path.name: path for path in (ORACLES / "nutch-site").iterdir() if path.is_dir()}


@contextmanager
def served() -> Iterator[list[Site]]:
    """Every folder by a server of its own; links to the port that Heritrix has are turned to it."""
    with ExitStack() as stack:
        sites = []
        for number, (name, folder) in enumerate(sorted(folders().items()), 1):
            server = stack.enter_context(small_site(1, 0, host=f"127.0.9.{number}"))
            files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
            for file, path in files.items():
                body = path.read_bytes().replace(b"http://127.0.0.1:7777/", server.url.encode())
                kind = guess_type(file)[0] or "application/octet-stream"
                server.answers[f"/{file}"] = (200, {"Content-Type": kind}, body)
            sites.append(Site(name, files, server))
        yield sites


def test_every_file_is_found(tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with served() as sites:
        seeds = [seed for site in sites for seed in site.seeds()]
        run: Run = crawl(into, settings(tmp_path), *seeds, "--requisites")
        assert run.status == 0, run.errors
        problems, more = {}, []
        rows = read_table(into, "pages", ["url", "outcome"]).to_pylist()
        fetched = {row["url"] for row in rows if row["outcome"] == "ok"}
        for site in sites:
            for file in site.files:
                problems[f"{site.name}: {file}"] = "" if f"{site.server.url}{file}" in fetched else "was not fetched"
                fetched.discard(f"{site.server.url}{file}")
            asked = [path for path, times in site.server.asked.items() if times > 1]
            more += [f"{site.name}{path} asked for twice" for path in asked]
    robots = {f"{site.name}: robots.txt" for site in sites if "robots.txt" in site.files}
    judge({name: problem for name, problem in problems.items() if name not in robots}, POLICY)
    assert not more
    assert not fetched, "fetched, and in no folder"
