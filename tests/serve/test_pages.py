"""Search and copies as a browser without script gets them."""

import re
from base64 import b64encode
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from fyke.serve import dashboard
from fyke.serve.hosts import KnownHost
from search.archives import Answer, Archive, archive, html, indexed
from serve.kit import client


def test_search_and_paging(plums: Path) -> None:
    with client(plums) as ask:
        home = ask.get("/")
        assert home.status_code == 200 and 'role="search"' in home.text and "61 pages" in home.text
        first = ask.get("/", params={"q": "plum", "site": "fruit.example"})
        assert "30 pages" in first.text and first.text.count('<li class="hit">') == 10
        assert "<mark>" in first.text and 'rel="next"' in first.text and 'rel="prev"' not in first.text
        last = ask.get("/", params={"q": "plum", "site": "fruit.example", "page": "3"})
        assert last.text.count('<li class="hit">') == 10 and 'rel="next"' not in last.text
        beyond = ask.get("/", params={"q": "plum", "site": "fruit.example", "page": "99"})
        assert "Nothing found" in beyond.text


def test_only_indexed_crawls_are_counted(plums: Path, tmp_path: Path) -> None:
    bare = archive(tmp_path / "bare", [("http://a.example/", html("Nothing"))])
    more = archive(tmp_path / "more", [("http://b.example/", html("More"))])
    indexed(more)
    with client(plums, bare) as ask:
        assert "61 pages of 1 crawl; 1 more without an index yet." in ask.get("/").text
    with client(plums, more) as ask:
        assert "62 pages of 2 crawls." in ask.get("/").text


def test_a_filter_that_says_nothing(plums: Path) -> None:
    with client(plums) as ask:
        page = ask.get("/", params={"q": "plum after:foo"})
        assert page.status_code == 400 and 'value="plum after:foo"' in page.text
        assert "after: &#39;foo&#39; is not valid; write a year, month or day" in page.text
        for name, wrong in (("after", "2020-99-99"), ("before", "yesterday"), ("lang", "12"), ("site", "..")):
            asked = {"q": "plum", name: wrong}
            statuses = [ask.get(path, params=asked).status_code for path in ("/", "/api/search")]
            assert statuses == [400, 400], "the page and the API mean the same"
        answer = ask.get("/api/search", params={"q": "plum site:"})
        assert answer.status_code == 400 and answer.json()["error"].startswith("site: it is empty; write the name")


def test_a_crawl_that_has_ended_takes_no_orders(plums: Path) -> None:
    with client(plums) as ask:
        for path in ("/crawl/fruit", "/crawl/fruit/host/fruit.example"):
            page = ask.get(path).text
            assert re.search(r'<(?:div|section)[^>]* id="(?:all-orders|steer)"[^>]* hidden>', page), path


@pytest.mark.parametrize("failures", [0, 3])
def test_a_host_fails_if_its_last_answers_did(plums: Path, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """One bad answer may be that of a page."""
    host = KnownHost("fruit", "a.example", "a.example", [], 9, failures, "", "server_error", 0.0, None, 0.0, 0.0)
    monkeypatch.setattr(dashboard, "known_host", lambda *_: host)
    with client(plums) as ask:
        text = ask.get("/crawl/fruit/host/a.example").text
    assert "Last seen of it: server_error" in text and ("Fails." in text) == (failures > 0)


def test_near_duplicates_are_one_result_and_can_be_seen(tmp_path: Path) -> None:
    words = [f"{one}{other}" for one in ("plum", "stone", "tree", "fruit") for other in range(60)]
    visits = [(f"http://{n}.example/?a=1&b=%3C", html(f"Copy {n}", f"{' '.join(words)} {n}")) for n in range(4)]
    visits.append(("http://other.example/", html("Another", "plum1 and nothing else " * 20)))
    near = archive(tmp_path / "near", visits)
    indexed(near)
    with client(near) as ask:
        page = ask.get("/", params={"q": "plum1"}).text
        assert page.count('<li class="hit">') == 2
        (link,) = re.findall(r'<a href="([^"]*)">and 3 like it<', page)
        assert ask.get(unescape(link)).text.count('<li class="hit">') == 4
        (copies,) = re.findall(r'<ul class="like".*?</ul>', page, re.DOTALL)
        links = [unescape(each) for each in re.findall(r'href="([^"]*)"', copies)]
        assert len(set(links)) == 3 and {ask.get(each).status_code for each in links} == {200}
        hits = ask.get("/api/search", params={"q": "plum1"}).json()["hits"]
        assert [hit["more_like_it"] for hit in hits if ".example/?" in hit["url"]] == [3]


def test_groups_and_filters(plums: Path) -> None:
    with client(plums) as ask:
        grouped = ask.get("/", params={"q": "plum"}).text
        assert grouped.count('<li class="hit">') == 5
        assert "28 more from <bdi>fruit.example</bdi>" in grouped
        german = ask.get("/", params={"q": "plum", "lang": "de"}).text
        assert (
            german.count('<li class="hit">') == 1 and "Pflaumen" in german and '<details class="filters" open' in german
        )
        assert "Nothing found" in ask.get("/", params={"q": "plum", "before": "2001-01-01"}).text
        assert ask.get("/", params={"q": "plum", "after": "2001"}).text.count('<li class="hit">') == 5
        only = ask.get("/", params={"site": "obst.example"}).text  # a filter alone asks for all
        assert only.count('<li class="hit">') == 1


def test_suggestion_keeps_filters(plums: Path) -> None:
    with client(plums) as ask:
        for query, begin, better in (("+plumz", "Did you mean", "%2Bplum"), ("plumz", "These are for", "plum")):
            page = ask.get("/", params={"q": query, "lang": "en"}).text
            link = re.search(rf'{begin} <a href="([^"]+)"', page)
            assert link is not None and link[1].replace("&amp;", "&") == f"/?q={better}&lang=en"
            assert ('<li class="hit">' in page) == (query == "plumz")


def test_a_word_that_no_page_has_is_named(plums: Path) -> None:
    with client(plums) as ask:
        page = ask.get("/", params={"q": "plum <qqqq>", "lang": "de"}).text
        assert page.count('<li class="hit">') == 1 and "No page has <bdi>&lt;qqqq&gt;</bdi></p>" in page
        assert "No page has" not in ask.get("/", params={"q": "<qqqq>", "lang": "de"}).text
        assert ask.get("/api/search", params={"q": "plum qqqq"}).json()["unknown"] == ["qqqq"]


def test_filters_never_become_words(plums: Path) -> None:
    with client(plums) as ask:
        for q in ("OR plum", '"plum', "plum OR", "| plum", "plum -"):
            page = ask.get("/", params={"q": q, "lang": "de"}).text
            assert page.count('<li class="hit">') == 1, q
        assert "Nothing found" in ask.get("/", params={"q": "plum", "site": 'x" OR plum'}).text


def test_copy_page_and_what_is_known(plums: Path) -> None:
    url = "http://fruit.example/0"
    with client(plums) as ask:
        copy = ask.get("/copy", params={"url": url})
        assert copy.status_code == 200 and 'sandbox=""' in copy.text and "Archived" in copy.text
        assert "frame-src 'self'" in copy.headers["content-security-policy"]
        raw = ask.get("/raw", params={"url": url})
        assert "Plums are a fruit" in raw.text and "sandbox" in raw.headers["content-security-policy"]
        about = ask.get("/page", params={"url": url}).text
        assert "the first plum" in about and "Similar pages" in about and "warc/" in about
        saved = ask.get("/raw", params={"url": url, "save": "1"})
        assert saved.headers["content-disposition"] == 'attachment; filename="0"'
        assert saved.headers["content-type"] == "application/octet-stream"


def test_versions(tmp_path: Path) -> None:
    """Two copies of a URL, each by its time; without a time the newest that is a page."""
    url = "http://a.example/"
    made = archive(tmp_path / "crawl", [(url, html("old")), (url, html("new")), (url, Answer("gone", 404))])
    with client(made) as ask:
        assert "new" in ask.get("/raw", params={"url": url}).text
        stamps = re.findall(r"at=(\d{14})", ask.get("/page", params={"url": url}).text)
        assert len(stamps) == 3
        texts = [ask.get("/raw", params={"url": url, "at": stamp}).text for stamp in stamps]
        assert ["gone" in texts[0], "new" in texts[1], "old" in texts[2]] == [True] * 3
        assert "<strong>status 404</strong>" in ask.get("/copy", params={"url": url, "at": stamps[0]}).text


def test_parts_out_of_the_archive(tmp_path: Path) -> None:
    """Style sheets, what they import, and images are put in; nothing is left to be loaded."""
    page = html(
        "page", "text <img src=/dot.png srcset='/x 2x'><img src=/none.png>", {}, "<link rel=stylesheet href=a.css>"
    )
    visits = [
        ("http://a.example/", page),
        (
            "http://a.example/a.css",
            Answer("@import url(b.css); h1{color:red}</style>", headers={"Content-Type": "text/css"}),
        ),
        ("http://a.example/b.css", Answer("@import 'a.css'; p{margin:0}", headers={"Content-Type": "text/css"})),
        ("http://a.example/dot.png", Answer(b"\x89PNG\r\n\x1a\n", headers={"Content-Type": "image/png"})),
    ]
    with client(archive(tmp_path / "crawl", visits)) as ask:
        text = ask.get("/raw", params={"url": "http://a.example/"}).text
    assert "p{margin:0}" in text and "h1{color:red}\\3c /style>" in text
    assert 'src="data:image/png;base64,' in text and "srcset" not in text and "<link" not in text


def test_parts_are_those_of_the_time_of_the_copy(tmp_path: Path) -> None:
    """A page of an earlier date is shown with the images of that date."""
    page, image = "http://a.example/", "http://a.example/dot.png"
    images = [Answer(body, headers={"Content-Type": "image/png"}) for body in (b"first", b"second")]
    versions = [html(name, "<img src=dot.png>") for name in ("old", "new")]
    made = archive(
        tmp_path / "crawl", [(page, versions[0]), (image, images[0]), (page, versions[1]), (image, images[1])]
    )
    with client(made) as ask:
        stamps = re.findall(r"at=(\d{14})", ask.get("/page", params={"url": page}).text)
        texts = [ask.get("/raw", params={"url": page, "at": stamp}).text for stamp in stamps]
    for text, name, body in zip(texts, ("new", "old"), (b"second", b"first"), strict=True):
        assert name in text and b64encode(body).decode() in text


def test_a_copy_that_redirects_says_where_to(tmp_path: Path) -> None:
    """It has nothing else to show; the link leads to the copy of the same time."""
    old = "http://a.example/old"
    answers = [Answer("", 302, {"Location": place}) for place in ("/new?a=1&b=<2>", "javascript:alert(1)")]
    made = archive(tmp_path / "crawl", [(old, answers[0]), ("http://a.example/bad", answers[1])])
    with client(made) as ask:
        text = ask.get("/copy", params={"url": old}).text
        assert re.search(r'leads to <a href="/copy\?url=http%3A%2F%2Fa.example%2Fnew%3Fa%3D1%26b%3D%253C2%253E', text)
        assert "leads to" not in ask.get("/copy", params={"url": "http://a.example/bad"}).text


def test_mistakes(plums: Path, tmp_path: Path) -> None:
    with client(plums) as ask:
        for path, status, told in (
            ("/copy", 400, "is not a URL"),
            ("/copy?url=mailto:x", 400, "is not a URL"),
            ("/copy?url=http://none.example/", 404, "There is no copy"),
            ("/raw?url=http://none.example/", 404, "cannot be read"),
            ("/nowhere", 404, "Not Found"),
            ("/crawl/none", 404, "no crawl of this name"),
        ):
            answer = ask.get(path)
            assert (answer.status_code, told in answer.text) == (status, True), path
        assert ask.post("/").status_code == 405
        assert ask.get("/", params={"q": "plum", "page": "-1"}).status_code == 200
    with client(archive(tmp_path / "new", [("http://a.example/", html("x"))])) as ask:
        assert "fyke index" in ask.get("/").text and "fyke index" in ask.get("/?q=x").text
        assert ask.get("/crawl", follow_redirects=True).status_code == 200
        assert ask.get("/copy?url=http://a.example/").status_code == 200
        indexed(tmp_path / "new")
        assert "1 page" in ask.get("/?q=x").text  # found without a new start


def test_several_crawls_are_one(plums: Path, tmp_path: Path) -> None:
    other = archive(tmp_path / "fruit", [("http://fig.example/", html("Fig", "a fig is no plum"))])
    indexed(other)
    with client(plums, other) as ask:
        assert "fig.example" in ask.get("/", params={"q": "plum fig"}).text
        assert 'href="/crawl/fruit-2"' in ask.get("/crawl").text
        assert ask.get(f"/copy?url={quote('http://fig.example/')}").status_code == 200


def test_copies_of_one_second_come_as_they_were_written(tmp_path: Path) -> None:
    made, words = Archive(tmp_path / "crawl"), ["apricot", "durian", "durian", "plum", "cherry"]
    for number, word in enumerate(words):
        made.now = 1_700_000_000 + number / 10 - 1
        made.visit("http://a.example/", html("Fruit", f"A sentence about {word}. " * 9))
    made.close()
    with client(tmp_path / "crawl") as asking:
        told = asking.get("/diff", params={"url": "http://a.example/"}).text
    assert told.count("<option") == 2 * 4 and "<del>plum</del><ins>cherry</ins>" in told
