"""Sitemaps of every kind, whole, broken and hostile."""

import gzip
from collections.abc import Callable
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.batches import Kind
from fyke.core.pages import Page
from fyke.harvest import Parser
from fyke.harvest.links import MOST_LINKS
from fyke.harvest.sitemap import MAX_UNFOLDED_BYTES, sitemap_links, unfold
from fyke.harvest.xmlscan import begin_of
from harvest.conftest import make_answer

Read = Callable[..., Page]

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
URLSET = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {NS} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
<url><loc> http://example.com/a?x=1&amp;y=2 </loc><lastmod>2024-01-01</lastmod>
<image:image><image:loc>http://example.com/i.png</image:loc></image:image>
<xhtml:link rel="alternate" hreflang="de" href="http://example.com/de/a"/></url>
<url><loc><![CDATA[http://example.com/b]]></loc></url>
<url><loc>http://example.com/b</loc></url><url><loc/></url>
</urlset>"""
LINKS = ["http://example.com/a?x=1&y=2", "http://example.com/de/a", "http://example.com/b"]
INDEX = f"<sitemapindex {NS}><sitemap><loc>http://example.com/1.xml.gz</loc></sitemap></sitemapindex>"


@pytest.mark.parametrize("media_type", ["text/xml", "application/xml; charset=utf-8", "application/foo+xml", ""])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_sitemap(read: Read, media_type: str, mark: str) -> None:
    page = read(mark + URLSET, media_type=media_type)
    assert page.links.pages == LINKS
    assert page.links.base == page.url


@pytest.mark.parametrize(
    ("count", "chars", "cut"), [(MOST_LINKS, 20, False), (MOST_LINKS + 1, 20, True), (4000, 7000, True)]
)
@pytest.mark.parametrize("text", [True, False])
def test_links_that_are_not_taken_are_told(read: Read, count: int, chars: int, cut: bool, text: bool) -> None:
    urls = [f"http://example.com/{number:0{chars}}" for number in range(count)]
    if text:
        page = read("\n".join(urls), media_type="text/plain", url="http://example.com/sitemap.txt")
    else:
        page = read(
            "<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>", media_type="text/xml"
        )
    assert page.cut is cut and len(page.links.pages) == min(count, MOST_LINKS)


def test_in_other_encodings(read: Read) -> None:
    text = "<?xml version='1.0' encoding='{}'?><urlset><url><loc>http://example.com/é</loc></url></urlset>"
    for encoding in ("iso-8859-1", "utf-16", "windows-1250"):
        page = read(text.format(encoding).encode(encoding), media_type="text/xml")
        assert page.links.pages == ["http://example.com/é"], encoding


def test_an_index_and_a_prefix(read: Read) -> None:
    assert read(INDEX, media_type="text/xml").links.listings == ["http://example.com/1.xml.gz"]
    prefixed = f"<s:urlset xmlns:s='{NS}'><s:url><s:loc>x</s:loc></s:url></s:urlset>".replace('"', "")
    assert read(prefixed, media_type="text/xml").links.pages == ["x"]


@pytest.mark.parametrize(
    "broken",
    [
        URLSET[: URLSET.rindex("</url>")],
        URLSET.replace("&amp;", "&"),
        URLSET.replace("<lastmod>", "<lastmod><b>"),
        URLSET.replace("</urlset>", "</urlset>trailing"),
        URLSET.replace("xhtml:link", "undeclared:link"),
        "\n\n" + URLSET,
        URLSET.replace("2024", "\x0b\x01"),
    ],
)
def test_a_broken_sitemap(read: Read, broken: str) -> None:
    assert set(LINKS) <= set(read(broken, media_type="application/xml").links.pages)


WARNING = "<br />\n<b>Warning</b>:  foo(): bar in <b>/x.php</b> on line <b>3</b><br />\n"
BEFORE = [
    WARNING,
    2 * WARNING + "\ufeff",
    "\n\n \t\r\n",
    "\ufeff\ufeff",
    "\ufeff\n\ufeff ",
    "Notice: x in /x.php on line 3\n",
]


@pytest.mark.parametrize("before", [*BEFORE, "<p class='wpdberror'>" + "x" * 4_000])
@pytest.mark.parametrize("document", [URLSET, URLSET.partition("?>\n")[2], URLSET.replace("</urlset>", "trailing")])
@pytest.mark.parametrize("media_type", ["text/xml", "text/html", "application/octet-stream"])
def test_text_before_a_sitemap(before: str, document: str, media_type: str) -> None:
    exchange = make_answer("http://example.com/map.php", media_type)
    exchange.visit.kind = Kind.LISTING
    page = Parser().parse(exchange, (before + document).encode())
    assert page.listing and set(page.links.pages) == set(LINKS)


@pytest.mark.parametrize("before", BEFORE)
def test_a_long_sitemap_with_text_before_it_is_read_to_its_end(before: str) -> None:
    """Not by the HTML parser, which reads the beginning of a broken one only."""
    rows = "".join(f"<url><loc>http://example.com/{number:0250}</loc></url>" for number in range(40_000))
    data = f"{before}<?xml version='1.0'?><urlset>{rows}</urlset>".encode()
    found, _ = sitemap_links(lambda: iter([data[: 1 << 20], data[1 << 20 :]]), "http://h/")
    assert len(found) == 40_000


@pytest.mark.parametrize(
    "content",
    [
        "<br/>" + "x" * 5_000 + URLSET,
        "<html><pre>" + URLSET,
        "<catalog>" + URLSET + "</catalog>",
        "<rss><channel><description><![CDATA[" + URLSET + "]]></description></channel></rss>",
    ],
)
def test_what_only_holds_a_sitemap_is_none(read: Read, content: str) -> None:
    assert not set(LINKS) & set(read(content, media_type="text/xml").links.pages)


def test_a_warning_before_a_feed(read: Read) -> None:
    feed = "<?xml version='1.0'?><rss><channel><item><link>http://h/1</link></item></channel></rss>"
    assert read(WARNING + feed, media_type="application/rss+xml").links.pages == ["http://h/1"]


@pytest.mark.parametrize("pump", ["<br/>", "<b>", "<urlset", "<x:", "\ufeff", "a"])
def test_what_stands_before_is_searched_within_bounds(pump: str) -> None:
    """However long it is: only the first kilobytes are looked at."""
    data = (pump * (1 << 20)).encode()
    began = thread_time()
    for _ in range(20):
        begin_of(data)
    assert thread_time() - began < 1


def test_wherever_it_breaks_off_no_link_is_a_part_of_one(read: Read) -> None:
    whole = [URLSET.index(text) + len(text) for text in ("&amp;y=2", "de/a", "com/b")]
    for end in range(len(URLSET)):
        found = read(URLSET[:end], media_type="text/xml").links.pages
        assert found == LINKS[: len(found)], URLSET[:end][-40:]
        assert len(found) >= sum(at < end - len("]]></loc>") for at in whole)


def test_entries_without_a_loc(read: Read) -> None:
    document = "<urlset><url> http://h/1 </url><url>about<loc>http://h/2</loc>it</url></urlset>"
    assert read(document, media_type="text/xml").links.pages == ["http://h/1", "http://h/2"]


DECLARATIONS = [
    '[<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]',
    '[<!ENTITY c SYSTEM "file:///etc/passwd">]',
    '[<!ENTITY % p SYSTEM "http://example.com/x.dtd"> %p;]',
    '[<!ENTITY c "</loc></url><url><loc>http://garbage/</loc>">]',
    "[<!-- ' --><?x ]> ?><!ENTITY c '<urlset><url><loc>http://garbage/'>]",
    'SYSTEM "http://example.com/sitemap.dtd"',
    'PUBLIC "-//X" "http://example.com/sitemap.dtd" [ ]',
    "[ %undeclared; ]",
    "",
]
REFERENCES = ["http://h/&c;", "&c;", "http://&c;/x", "http://h/?a&c;b=&c;", "http://h/&amp;&c;"]


@pytest.mark.parametrize("declaration", DECLARATIONS)
@pytest.mark.parametrize("reference", REFERENCES)
def test_entities_refused_leave_no_links(read: Read, declaration: str, reference: str) -> None:
    document = (
        f"<?xml version='1.0'?><!-- < --><!DOCTYPE urlset {declaration}><urlset><url><loc>http://h/1</loc></url>"
        f"<url><loc>{reference}</loc><link rel='alternate' href='{reference}'/></url>"
        "<url><loc><![CDATA[http://h/?a&c;<loc>]]></loc></url><url><loc>http://h/2?a&amp;b;=&eacute;</loc></url></urlset>"
    )
    expected = ["http://h/1", "http://h/?a&c;<loc>", "http://h/2?a&b;=é"]
    for whole in (document, document.replace("</urlset>", "")):
        assert read(whole, media_type="text/xml").links.pages == expected


def test_declarations_without_an_end_hold_no_links(read: Read) -> None:
    document = '<!DOCTYPE urlset [<!ENTITY c "<urlset><url><loc>http://garbage/</loc></url></urlset>'
    assert read(document, media_type="text/xml").links.pages == []


@pytest.mark.parametrize("unclosed", ["<!DOCTYPE x [<!ENTITY", "<!--", "<![CDATA[", "<!DOCTYPE x [", "<?", "'", "&c;"])
def test_what_never_ends_is_read_in_linear_time(unclosed: str) -> None:
    data = f"<!DOCTYPE x [<!ENTITY a 'b'> {unclosed * 200_000}".encode()
    assert sitemap_links(lambda: iter([data]), "http://h/") == ([], {})


def test_other_xml_is_left_alone(read: Read) -> None:
    assert read("<catalog><url><loc>x</loc></url></catalog>", media_type="text/xml").links.pages == []
    assert read("", media_type="text/xml").links.pages == []


@pytest.mark.parametrize("media_type", ["application/gzip", "application/x-gzip", ""])
@pytest.mark.parametrize("inner", [URLSET, "\ufeff" + URLSET, " \n" + URLSET])
def test_gzip(read: Read, media_type: str, inner: str) -> None:
    page = read(gzip.compress(inner.encode()), "http://example.com/map.xml.gz", media_type)
    assert set(page.links.pages) == set(LINKS)


@pytest.mark.parametrize("media_type", ["application/octet-stream", "text/plain", "application/xml", "text/html", ""])
@pytest.mark.parametrize("pack", [gzip.compress, bytes])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n<?xml version='1.0' encoding='utf-8'?><!-- map -->\n"])
def test_a_sitemap_by_any_name(media_type: str, pack: Callable[[bytes], bytes], before: bytes) -> None:
    """What a robots.txt or an index calls a sitemap is one, if its root is. What nobody calls one is read as it is
    called."""
    inner = before + b"<urlset><url><loc>http://example.com/a</loc></url></urlset>"
    exchange = make_answer("http://example.com/map.php", media_type)
    exchange.visit.kind = Kind.LISTING
    page = Parser().parse(exchange, pack(inner))
    assert page.listing and page.links.pages == ["http://example.com/a"]
    if media_type == "text/plain":
        assert not Parser().parse(make_answer("http://example.com/map.php", media_type), pack(inner)).listing


@pytest.mark.parametrize(
    "content", [b"<html><a href=/a>a</a>", b"<catalog><loc>x</loc></catalog>", b"urlset", b"<", b""]
)
def test_what_is_called_a_sitemap_and_is_none_is_read_as_its_server_says(content: bytes) -> None:
    exchange = make_answer("http://example.com/map.php", "text/html")
    exchange.visit.kind = Kind.LISTING
    page = Parser().parse(exchange, content)
    assert page.media_type == "text/html" and not page.listing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"http://h/1\n", True),
        (b"\xef\xbb\xbfhttp://h/1\r\n\r\n \thttps://h/2\t", True),
        (b"# all pages\nhttp://h/1", True),
        (b"http://h/%d\n" % 1 * 20_000, True),  # judged by its beginning, of which the last line is a part of one
        (b"http://h/1\nand more", False),
        (b"http://h/1 is mine\n", False),
        (b"User-agent: *\n", False),
        (b"http" * 100_000, False),
        (b"\n", False),
        (b"# notes", False),
    ],
)
def test_plain_text_that_is_called_a_sitemap_is_one_if_it_holds_urls_alone(text: bytes, expected: bool) -> None:
    exchange = make_answer("http://example.com/notes", "text/plain")
    assert not Parser().parse(exchange, text).listing
    exchange.visit.kind = Kind.LISTING
    page = Parser().parse(exchange, text)
    assert (page.listing, bool(page.links.pages)) == (expected, expected)


def test_a_line_that_is_no_url_costs_only_itself() -> None:
    lines = [f"http://h/{number}" for number in range(9)]
    for others in (["see also h/10"], ["<http://h/10>", "http://h/a b", "-- the end --"], ["-"] * 8):
        text = "\n".join([*others[:1], "", "# all pages", *lines, *others[1:]])
        exchange = make_answer("http://example.com/notes", "text/plain")
        exchange.visit.kind = Kind.LISTING
        page = Parser().parse(exchange, text.encode())
        assert page.listing and page.links.pages == lines
        assert exchange.detail.startswith(f"{len(others)} line")
    exchange = make_answer("http://example.com/notes", "text/plain")
    exchange.visit.kind = Kind.LISTING
    assert not Parser().parse(exchange, "\n".join([*lines, *["words"] * 9]).encode()).listing


@pytest.mark.parametrize("media_type", ["text/plain", "text/html", "application/xml", "application/octet-stream", ""])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_text_sitemap_however_it_is_sent(
    media_type: str, end: str, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    """Called one by a robots.txt or an index, or named like one and a seed; with any type, end of line and encoding."""
    lines = [f"http://example.com/{number}/é" for number in range(3_000)]
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    content = pack((mark + end.join(["# all", *lines, "and more", ""])).encode(encoding))
    for url, kind in (("http://example.com/list.php", Kind.LISTING), ("http://example.com/sitemap.txt", Kind.PAGE)):
        exchange = make_answer(url, media_type)
        exchange.visit.kind = kind
        page = Parser().parse(exchange, content)
        assert page.listing and page.links.pages == lines, url
        assert exchange.detail == "1 line of this sitemap is no URL" and not page.cut


def test_bytes_of_a_text_sitemap_that_are_no_utf_8_are_sent_as_they_are(read: Read) -> None:
    page = read(b"http://h/\xe9?\xff\nhttp://h/\xc3\xa9\n", "http://h/sitemap.txt", "text/plain")
    assert page.links.pages == ["http://h/%E9?%FF", "http://h/é"]


def test_a_page_that_is_called_a_text_sitemap_stays_a_page() -> None:
    page = Parser().parse(make_answer("http://example.com/sitemap.txt", "text/html"), b"<p>none\n<a href=/a>a</a>")
    assert page.media_type == "text/html" and page.links.pages == ["/a"] and not page.listing


def test_of_a_long_text_sitemap_in_utf_16_the_beginning_is_read_and_that_is_told() -> None:
    exchange = make_answer("http://example.com/sitemap.txt", "text/plain")
    page = Parser().parse(exchange, ("http://h/1\n" + "#" * (5 << 20) + "\nhttp://h/2\n").encode("utf-16"))
    assert page.links.pages == ["http://h/1"] and page.cut


def test_lines_of_a_named_text_sitemap_that_are_no_urls_are_counted(read: Read) -> None:
    text = "\ufeffhttp://example.com/a\r\n\r\n# b\r\nnot a link\r\nexample.com/b\r\nhttp://example.com/c\r\n"
    for body, media_type, name in (
        (text, "text/plain", "sitemap.txt"),
        (gzip.compress(text.encode()), "application/gzip", "sitemap.txt.gz"),
    ):
        page = read(body, f"http://example.com/{name}", media_type)
        assert page.exchange.detail == "2 lines of this sitemap are no URL"
    assert read("http://example.com/a\n", "http://example.com/sitemap.txt", "text/plain").exchange.detail == ""


def test_gzip_that_is_no_sitemap_cut_or_in_members(read: Read) -> None:
    url, kind = "http://example.com/map.xml.gz", "application/gzip"
    assert read(gzip.compress(b"x" * 100), url, kind).links.pages == []
    assert read(b"\x1f\x8bnonsense", url, kind).links.pages == []
    assert read(b"", url, kind).links.pages == []
    many = gzip.compress(URLSET[:400].encode()) + gzip.compress(URLSET[400:].encode())
    assert read(many, url, kind).links.pages == LINKS
    assert read(gzip.compress(URLSET.encode())[:-30], url, kind).links.pages[:1] == LINKS[:1]


def test_a_bomb_unfolds_to_its_limit() -> None:
    bomb = gzip.compress(bytes(8 << 20)) * 20
    assert len(unfold(bomb)) == MAX_UNFOLDED_BYTES
    assert len(unfold(bomb, 1000)) == 1000


@given(st.binary(max_size=2000), st.integers(0, 3000))
def test_unfolding_is_the_inverse_of_folding(data: bytes, limit: int) -> None:
    folded = gzip.compress(data[:50]) + gzip.compress(data[50:])
    assert unfold(folded, limit) == data[:limit]
    unfold(data, limit)
    unfold(b"\x1f\x8b\x08" + data, limit)


@given(
    st.binary()
    | st.lists(st.sampled_from(["<", "</", ">", "urlset", "url", "loc", "<![CDATA[", "&", "\x00", "é"])).map(
        lambda parts: "".join(parts).encode()
    )
)
def test_never_raises(data: bytes) -> None:
    sitemap_links(lambda: iter([data]), "http://h/")
    sitemap_links(lambda: iter([b"<urlset>", data]), "http://h/")


def test_a_tower_of_elements() -> None:
    assert sitemap_links(lambda: iter([b"<a>" * 20_000]), "http://h/") == ([], {})


def test_a_text_sitemap(read: Read) -> None:
    text = "\ufeffhttp://example.com/a\r\n\n  https://example.com/b \nnot a link http://example.com/c\nftp://h/\n"
    expected = ["http://example.com/a", "https://example.com/b", "ftp://h/"]
    for url in ("http://example.com/sitemap.txt", "http://example.com/x/my-Sitemap-2.txt?y=/z"):
        assert read(text, url, "text/plain").links.pages == expected
    for url in ("http://example.com/notes.txt", "http://example.com/sitemap/x.txt", "http://example.com/?/sitemap.txt"):
        assert read(text, url, "text/plain").links.pages == []
    folded = gzip.compress(text.encode())
    assert read(folded, "http://example.com/sitemap.txt.gz", "application/gzip").links.pages == expected
