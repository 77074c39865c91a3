"""A server gets the query of a link in the bytes of the page the link was on."""

import codecs
import re
from collections.abc import Callable
from html import escape
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fyke.core.markup import TakesLong
from fyke.core.pace import haste
from fyke.core.pages import ISO_2022_JP, OWN_CODECS, Page, PageLinks
from fyke.core.resolve import LinkResolver
from fyke.core.urls import canonical
from fyke.harvest.charset import codec_of
from fyke.harvest.decoders import install
from fyke.harvest.queries import encode_queries, query_encoded, with_queries_encoded

install()

LABELS = [
    *["ibm866", "iso-8859-2", "iso-8859-7", "koi8-r", "macintosh", "windows-874", "windows-1251", "windows-1252"],
    *["x-mac-cyrillic", "gbk", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr"],
]
WIDE = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "x-whatwg-replacement"]
_REFERENCE = re.compile(r"&#(\d+);")

letters = st.text("abc" + "поискМЯ" + "äéßœŁş" + "検索カｶ日本語" + "搜索中文" + "검색" + "ไทย" + "Ωμ" + "😀\u2212")


def codec(label: str) -> str:
    found = codec_of(label)
    assert found is not None
    return found


def links(page: Page) -> list[str]:
    return [at.url.decode() for at in LinkResolver().resolve([(page.links.base, page.links.pages)]).locators()]


def test_a_search_on_a_page_in_windows_1251(read: Callable[..., Page]) -> None:
    html = '<base href="/пусть/?ж"><a href="/s?q=поиск#якорь"><a href="поиск?q"><a href="?x=я"><a href="//я.рф/я?я">'
    page = read(html.encode("cp1251"), media_type="text/html; charset=windows-1251")
    assert links(page) == [
        "http://example.com/s?q=%EF%EE%E8%F1%EA",
        "http://example.com/%D0%BF%D1%83%D1%81%D1%82%D1%8C/%D0%BF%D0%BE%D0%B8%D1%81%D0%BA?q",
        "http://example.com/%D0%BF%D1%83%D1%81%D1%82%D1%8C/?x=%FF",
        "http://xn--41a.xn--p1ai/%D1%8F?%FF",
    ]


@pytest.mark.parametrize("label", LABELS)
@given(letters)
def test_the_page_can_read_its_own_query(label: str, text: str) -> None:
    """What is sent decodes to what was written; what the encoding lacks is there by its number."""
    sent = query_encoded(text, codec(label))
    assert sent.isascii()
    back = unquote_to_bytes(sent).decode(codec(label))
    back = _REFERENCE.sub(lambda match: chr(int(match[1])), back)
    wide = str.maketrans({"ｶ": "カ", "\u2212": "\uff0d"})  # as the Japanese encoders write them
    assert back.translate(wide) == text.translate(wide)


@pytest.mark.parametrize(
    ("label", "text", "sent"),
    [
        ("gbk", "€", "%80"),
        ("big5", "€", "%A3%E1"),
        ("shift_jis", "①ソⅰ¢", "%87@%83\\%FA@%26%23162%3B"),
        ("euc-jp", "①纊", "%AD%A1%F9%A1"),
        ("iso-2022-jp", "aカb¥c~é", "a%1B$B%+%1B(Bb%1B(J\\c%1B(B~%26%23233%3B"),
        ("windows-1252", "\x81\ud800", "%81%26%2365533%3B"),
    ],
)
def test_as_browsers_write_it(label: str, text: str, sent: str) -> None:
    assert query_encoded(text, codec(label)) == sent


@pytest.mark.parametrize("label", LABELS)
@given(st.lists(st.text(), max_size=4), st.sampled_from(["http://h/a/", "gopher://h/1/"]))
@example(["?q=é😀", "é", " ?é\t ", "http:?é#é?é", "mailto:é?é", "\u00a0?\u00a0"], "http://h/a/")
def test_only_the_query_changes_and_only_of_special_schemes(label: str, hrefs: list[str], base: str) -> None:
    found = with_queries_encoded(hrefs, base, codec(label))
    for href, encoded in zip(hrefs, found, strict=True):
        before, after = canonical(href, base), canonical(encoded, base)
        if before is None or after is None:
            assert before == after or len(encoded) > 8000
        else:
            assert before.partition("?")[0] == after.partition("?")[0]
            assert urlsplit(before).scheme in ("http", "https", "ftp") or before == after
    assert with_queries_encoded(found, base, codec(label)) == found


@pytest.mark.parametrize("label", LABELS)
def test_ascii_costs_nothing(label: str) -> None:
    hrefs = ["/a?b=c", "?<\"'> \\", "x#y"]
    assert with_queries_encoded(hrefs, "http://h/", codec(label)) is hrefs


@pytest.mark.parametrize("name", WIDE)
def test_pages_in_unicode_send_utf8(name: str) -> None:
    hrefs = ["/s?q=поиск"]
    assert with_queries_encoded(hrefs, "http://h/", name) is hrefs


@given(st.sampled_from([label for label in LABELS if label != "iso-2022-jp"]), letters)
def test_every_kind_of_link(read: Callable[..., Page], label: str, text: str) -> None:
    """Anchors, shunned anchors, frames, refreshes and images all have their queries encoded."""
    name = codec(label)
    writable = "".join(c for c in text if _writable(c, name)) + "a"
    href = escape(f"/s?q={writable}")
    html = (
        f'<a href="{href}&1"><a rel=nofollow href="{href}&2"><iframe src="{href}&3"></iframe>'
        f'<meta http-equiv=refresh content="0; url={href}&4"><img src="{href}&5">'
    )
    data = codecs.encode(html, _for_writing(name))
    page = read(data, media_type=f"text/html; charset={label}", requisites=True)
    every = page.links.pages + page.links.nofollow + page.links.requisites
    assert sorted(link[-1] for link in every) == list("12345")
    for link in every:
        assert unquote(link, name).startswith(f"/s?q={writable}&")


def _for_writing(name: str) -> str:
    short = name.removeprefix(OWN_CODECS)
    return {"user-defined": "ascii", "big5": "big5hkscs"}.get(short, short)


def _writable(character: str, name: str) -> bool:
    try:
        data = character.encode(_for_writing(name))
    except UnicodeEncodeError:
        return False
    return data.decode(name, "replace") == character and "%26%23" not in query_encoded(character, name)


def test_many_queries_are_not_encoded_while_others_wait() -> None:
    """A character at a time: half a megabyte of them takes a quarter of a second."""
    few, many = ([f"?q={'検索' * 10}{number}" for number in range(count)] for count in (100, 10_000))
    for charset in (ISO_2022_JP, f"{OWN_CODECS}gb18030"):
        with haste():
            encode_queries(PageLinks("http://a.example/", few), charset)
            encode_queries(PageLinks("http://a.example/", ["/a?q=x" * 5] * len(many)), charset)
            for links in (PageLinks("http://a.example/", many), PageLinks("http://a.example/", nofollow=many)):
                with pytest.raises(TakesLong):
                    encode_queries(links, charset)
        encode_queries(links, charset)
        assert "".join(links.nofollow).isascii()


def test_what_is_too_long_for_a_link_is_not_encoded() -> None:
    hrefs = [f"?{'あ' * 20_000}", "?あ"]
    assert with_queries_encoded(hrefs, "http://a.example/", "cp932") == [hrefs[0], "?%82%A0"]
