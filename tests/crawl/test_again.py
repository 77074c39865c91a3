"""A pass over a finished crawl finds exactly what has become of its pages, and leaves an archive others can read."""

import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from crawl.nginx import NGINX, nginx
from crawl.runs import crawl, fyke, settings
from fyke.archive import read_table

pytestmark = pytest.mark.skipif(not NGINX.exists(), reason="needs nginx")
LAST_WEEK = 1_700_000_000


def lay(root: Path, pages: Mapping[str, str], modified: int = LAST_WEEK) -> None:
    """Have exactly `pages` below `root`, by name and text; what is as it was keeps its time."""
    root.mkdir(exist_ok=True)
    for path in root.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = root / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            os.utime(path, (modified, modified))


def site(count: int, salt: str = "") -> dict[str, str]:
    """An index that links to `count` pages of about 5 kB; those whose number `salt` names are others."""
    rng = random.Random(5)
    pages = {f"p{n}.html": f"<title>{n}</title><p>{rng.randbytes(2500).hex()}" for n in range(count)}
    links = "".join(f"<a href={name}>{name}</a> " for name in pages)
    return {"index.html": f"<title>index</title>{links}", **pages}


def outcomes(into: Path) -> dict[str, list[str]]:
    """What became of each page at its visits, by the end of its URL."""
    found: dict[str, list[str]] = {}
    for row in read_table(into, "pages", ["url", "outcome"]).to_pylist():
        found.setdefault(row["url"].rpartition("/")[2], []).append(row["outcome"])
    return found


def records(into: Path) -> list[tuple[str, str]]:
    """Type and URL of each record, as warcio and fastwarc agree."""
    ours, theirs = [], []
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                record.raw_stream.read()
                ours.append((record.rec_type, record.rec_headers["WARC-Target-URI"]))
        with path.open("rb") as file:
            for record in FastIterator(file, parse_http=False):
                assert record.verify_block_digest()
                theirs.append((record.headers["WARC-Type"], record.headers.get("WARC-Target-URI")))
    assert ours == theirs
    return ours


def changed(pages: Mapping[str, str]) -> dict[str, str]:
    """Pages 0 to 4 changed, 5 to 7 away, two new; the index tells."""
    after = {name: text for name, text in pages.items() if name not in ("p5.html", "p6.html", "p7.html")}
    for n in range(5):
        after[f"p{n}.html"] += " changed"
    for n in (100, 101):
        after[f"p{n}.html"] = f"<title>{n}</title><p>a new page"
    after["index.html"] += "<a href=p100.html>new</a><a href=p101.html>new</a>"
    return after


def test_a_pass_finds_exactly_what_has_become_of_each_page(tmp_path: Path) -> None:
    root, into, config = tmp_path / "root", tmp_path / "crawl", settings(tmp_path)
    before = site(60)
    lay(root, before)
    with nginx(root) as url:
        first = crawl(into, config, url)
        assert first.status == 0 and first.summary["pages"] == 61, first.errors
        assert not first.summary["again"]
        lay(root, changed(before), LAST_WEEK + 1000)
        run = crawl(into, config, "--again")
        assert run.status == 0, run.errors
        found = run.summary["again"]
        assert {name: found[name] for name in ("number", "unchanged", "changed", "new", "gone")} == {
            "number": 1, "unchanged": 52, "changed": 6, "new": 2, "gone": 3,
        }  # fmt: skip
        assert "52 unchanged, 6 changed, 2 new, 3 gone" in run.errors
        whole = sum(len(text) for name, text in changed(before).items() if before.get(name) != text)
        assert found["bytes"] < whole + 0.1 * sum(map(len, before.values()))
        visits = outcomes(into)
        assert visits["p20.html"] == ["ok", "unchanged"] and visits["p1.html"] == ["ok", "ok"]
        assert visits["p5.html"] == ["ok", "client_error"] and visits["p100.html"] == ["ok"]
        kinds = [kind for kind, _ in records(into)]
        assert kinds.count("revisit") == 52
        checked = fyke("check", str(into))
        assert checked.returncode == 0, checked.stdout

        again = crawl(into, config, "--again")
        assert {name: again.summary["again"][name] for name in ("number", "unchanged", "changed", "new", "gone")} == {
            "number": 2, "unchanged": 60, "changed": 0, "new": 0, "gone": 3,
        }  # fmt: skip
        assert outcomes(into)["p5.html"][-1] == "gone"
        third = crawl(into, config, "--again")
        assert third.summary["again"]["unchanged"] == 60 and third.summary["again"]["gone"] == 0
    assert len(outcomes(into)["p5.html"]) == 3  # what is gone is not asked for any more
    checked = fyke("check", str(into))
    assert checked.returncode == 0, checked.stdout
