"""Pages with the same bytes: the second is a revisit record that names the first, and every reader has its text."""

import random
from pathlib import Path

import pytest

from crawl.runs import crawl, crawl_killed, fyke, read_table, settings
from crawl.small_site import SmallSite, small_site
from crawl.test_again import assert_mended_as_it_was
from fyke.archive.directory import CrawlDirectory
from fyke.archive.warc_reading import read_records
from fyke.explain import why
from fyke.search.archived import ArchiveReader
from serve.kit import client

HTML = {"Content-Type": "text/html; charset=utf-8"}
COPIES = 6


def record_types(into: Path) -> dict[str, list[tuple[str, str]]]:
    """Of each URL the types of its records that can be replayed, and what they refer to."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((into / "warc").glob("*.warc.gz")):
        for record in read_records(path):
            kind = record.get("warc-type")
            if kind in ("response", "revisit") and not record.get("warc-target-uri").endswith("/robots.txt"):
                found.setdefault(record.get("warc-target-uri"), []).append(
                    (kind, record.get("warc-refers-to-target-uri"))
                )
    return found


def lay_copies(site: SmallSite) -> list[str]:
    """Pages in folders of their own, of one text with a relative link: it leads elsewhere from each."""
    text = b"<title>copied</title><p>" + b"peculiar words that are here alone, " * 9 + b"<a href=next>next</a>"
    for number in range(COPIES):
        site.answers[f"/f{number}/a"] = (200, {**HTML, "X-Number": str(number)}, text)
        site.answers[f"/f{number}/next"] = (200, HTML, f"<p>after the copy number {number}".encode())
    links = "".join(f"<a href=/f{number}/a>{number}</a>" for number in range(COPIES))
    site.answers["/"] = (200, HTML, links.encode())
    return [f"{site.url}f{number}/a" for number in range(COPIES)]


def test_why_says_of_what_a_page_is_a_copy_and_that_it_is_not_shown(tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with small_site(1) as site:
        first, *others = lay_copies(site)
        site.answers["/"] = (200, HTML, b"<a href=f0/a>a</a><a href=f1/a>b</a><a href=none>c</a>")
        site.answers["/none"] = (200, HTML, b"<meta name=robots content=noindex>what few may find")
        assert crawl(into, settings(tmp_path), site.url).status == 0
    said = {url: why(CrawlDirectory(into), url).facts for url in (first, others[0], f"{site.url}none")}
    assert f"{first} has the same bytes" in said[others[0]]
    assert f"{others[0]} has the same bytes" in said[first]
    plain = [fact for fact in said[f"{site.url}none"] if "noindex" in fact or "bytes are" in fact]
    assert plain == ["it says noindex: search leaves it out, and so do exports without --all"]
    assert not any("noindex" in fact for fact in said[first])


def test_copies_are_archived_once_and_read_everywhere(tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    with small_site(1) as site:
        copies = lay_copies(site)
        assert crawl(into, settings(tmp_path), site.url).status == 0
        types = record_types(into)
        full = [url for url in copies if types[url] == [("response", "")]]
        assert len(full) == 1 and all(types[url] == [("revisit", full[0])] for url in copies if url not in full)
        assert all(f"/f{number}/next" in site.asked for number in range(COPIES)), "links of each are followed"
        assert fyke("check", str(into)).returncode == 0
        rows = read_table(into, "pages").to_pylist()
        assert len({row["digest"] for row in rows if row["url"] in copies}) == 1
        with ArchiveReader(into) as reader:
            pages = {row["url"]: page for row in rows if (page := reader.read(row)) is not None}
        assert all(b"peculiar words" in pages[url].content for url in copies)
        with client(into) as asking:
            assert all("peculiar words" in asking.get("/raw", params={"url": url}).text for url in copies)
        again = crawl(into, settings(tmp_path), "--again")
        assert again.summary["again"]["unchanged"] == len(types), again.summary
        changed = next(url for url in copies if url not in full)
        site.answers[changed.removeprefix(site.url.rstrip("/"))] = (200, HTML, b"<p>it is another text now")
        assert crawl(into, settings(tmp_path), "--again").summary["again"]["changed"] == 1
        with client(into) as asking:
            told = asking.get("/diff", params={"url": changed}).text
            assert "<ins>" in told and "peculiar" in told and told.count("<option") == 4
    assert_mended_as_it_was(into)


@pytest.mark.timeout(180)
def test_a_killed_crawl_names_no_record_that_is_not_there(tmp_path: Path) -> None:
    rng, into = random.Random(4), tmp_path / "crawl"
    store = {"checkpoint_s": 0.1, "warc_bytes": 20_000}
    slow = settings(tmp_path, politeness={"host_delay_s": 0.05}, store=store)
    with small_site(150) as site:
        for number in range(150):
            site.answers[f"/p{number}x"] = (200, HTML, f"<p>one of seven texts, the {number % 7}".encode() * 20)
            links = "".join(f"<a href=/p{to}>on</a>" for to in (f"{number}x", 2 * number + 1, 2 * number + 2))
            site.answers[f"/p{number}"] = (200, HTML, f"<title>{number}</title>{links}".encode())
        site.answers["/"] = site.answers["/p0"]
        for _ in range(6):
            assert crawl_killed(into, slow, 0.4 + rng.random(), site.url)
        assert crawl(into, settings(tmp_path, store=store), site.url).status == 0
    types = record_types(into)
    assert sum(kind == "revisit" for of in types.values() for kind, _ in of) > 100
    for of in types.values():
        assert all(("response", "") in types[refers] for kind, refers in of if kind == "revisit")
    with ArchiveReader(into) as reader:
        pages = [reader.read(row) for row in read_table(into, "pages").to_pylist() if row["warc_file"]]
    assert sum(page is not None and b"one of seven texts" in page.content for page in pages) == 150
    assert fyke("check", str(into)).returncode == 0
    assert_mended_as_it_was(into)
