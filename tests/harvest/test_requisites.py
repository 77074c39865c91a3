"""What a page needs to be shown, found only when asked for."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.batches import Kind, LinkKind, url_batch
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.urls import locate
from fyke.core.visits import batch_of, visits_of
from fyke.harvest import css, requisites
from fyke.harvest.css import PIECE_CHARS, css_references
from fyke.harvest.link_groups import groups_of
from fyke.harvest.requisites import srcset

Read = Callable[..., Page]

CSS_PARTS = (
    *(
        "a",
        "url(",
        "URL(",
        "url",
        "(",
        ")",
        '"',
        "'",
        "\\",
        "\n",
        " ",
        "\\61 ",
        "/*",
        "*/",
        "*",
        "/",
        "@import",
        "@imp",
    ),
    *("ort", "image-set(", "-set(", "image", "x y", "b" * 7, " " * 9, "url('x", "')", '")', "\\)", "\\\n"),
)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<img src=a>", ["a"]),
        ("<img src=a srcset='b 1x, c 2x'>", ["a", "b", "c"]),
        ("<picture><source srcset='a, b 100w'><img src=c></picture>", ["a", "b", "c"]),
        ("<script src=a></script><script>src=b</script>", ["a"]),
        ("<link rel=stylesheet href=a><link rel='shortcut icon' href=b><link rel=manifest href=c>", ["a", "b", "c"]),
        ("<link rel=preload as=image href=a imagesrcset='b 1x'>", ["a", "b"]),
        ("<link rel='alternate stylesheet' href=a><link rel=canonical href=b>", ["a"]),
        ("<video src=a poster=b><source src=c><track src=d></video><audio src=e></audio>", ["a", "b", "c", "d", "e"]),
        ("<object data=a></object><embed src=b>", ["a", "b"]),
        ("<input type=IMAGE src=a><input src=b>", ["a"]),
        ("<body background=a><table background=b>", ["a", "b"]),
        ("<style>@import 'a'; p { background: url(b) }</style>", ["a", "b"]),
        ("<p style='background: url(&quot;a&quot;)'>", ["a"]),
        ("<p style='background: image-set(&quot;a&quot; 1x, &quot;b&quot; 2x)'>", ["a", "b"]),
        ("<svg><image href=a /><image xlink:href=b /><use href='c#d'/><use href='#e'/></svg>", ["a", "b", "c#d"]),
        ("<img src='data:image/png;base64,xx'><img src=''><img><img src=' a '><img src=a>", ["a"]),
        ("<frame src=x><iframe src=y></iframe><a href=z>", []),
    ],
)
def test_requisites_of_html(read: Read, html: str, expected: list[str]) -> None:
    assert sorted(read(html, requisites=True).links.requisites) == expected
    assert read(html).links.requisites == []


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        ("a{b:url(x)}", ["x"]),
        ("a{b:URL( 'x y' )}", ["x y"]),
        ('a{b:url("x\\"y)z")}', ['x"y)z']),
        ("a{b:url(x\\29 y)}", ["x)y"]),
        ("a{b:url()}a{b:url('')}", []),
        ("@import 'a';@import url(b);@IMPORT url('c') screen;@import\"d\" print;", ["a", "b", "c", "d"]),
        ("/* url(x) @import 'y' */ a{b:url(z)}", ["z"]),
        ("a{content:'url(x)'; b:url(y)}", ["y"]),
        ("@font-face{src:local(f),url(a)format('woff'),url(b)}", ["a", "b"]),
        ("a{b:url(x", []),
        ("a{b:url(\\0 \\ffffff \\d800 )}", ["\ufffd\ufffd\ufffd"]),
        ("a{b:url('a\\\nb')}", ["ab"]),
        ("/* never closed url(x)", []),
        ("a{b:image-set('x.png' 1x, \"y.png\" 2x) no-repeat, 'z'}", ["x.png", "y.png"]),
        ("a{b:-webkit-image-set(url(x) 1x, url('y') 2x)}a{content:'z'}", ["x", "y"]),
        ("a{b:IMAGE-SET( 'x' type('image/avif') 1x, /* 'v' */ 'y' type( \"image/png\" ))}", ["x", "y"]),
        ("a{b:image-set(linear-gradient(red, blue) 1x, 'x\\29 y' 2x)}", ["x)y"]),
        ("a{b:image-set ('x')} a{b:image-set} a{b:image('x')}", []),
        ("a{b:image-set('x' 1x", ["x"]),
        ("a{b:)image-set('x'))}a{content:'y'}", ["x"]),
        ("a{content:'image-set('; b: c('x')}", []),
    ],
)
def test_references_in_css(css: str, expected: list[str]) -> None:
    assert list(css_references(css)) == expected


@given(st.lists(st.sampled_from(CSS_PARTS), max_size=60), st.integers(1, 80))
def test_a_style_sheet_says_the_same_whatever_the_size_of_its_pieces(parts: list[str], piece_chars: int) -> None:
    text = "".join(parts)
    for sheet in (text, text.replace("set", "")):  # in the other one, brackets are not looked for
        assert list(css_references(sheet, piece_chars)) == list(css_references(sheet, len(sheet)))


def test_brackets_outside_image_sets_change_no_result() -> None:
    rules = "".join(f"a{number}:not(b){{c:url({number}) calc(1px + (2px));d:'({number})'}}" for number in range(5000))
    assert list(css_references(rules)) == [str(number) for number in range(5000)]


@pytest.mark.parametrize(
    ("begin", "part", "end", "expected"),
    [
        ("", "a{b:url(", "", []),
        ("", "url('", "", []),
        ("", "url(\\", "", []),
        ("", "url( ", "", []),
        ("", "image-set((", "", []),
        ("", "@import '", "", ["@import "]),
        ("(", "a", "url(x)", ["x"]),
        ("(", "@", "url(x)", ["x"]),
        ("url(y", "\\61 ", " z)url(x)", ["x"]),
        ("url(", "/", ")url(x)", ["x"]),  # far too long for an address
        ("url('", "\\\n", "')url(x)", ["x"]),
        ("url(", " ", "x)", ["x"]),
        ("@import", "\t", "'x'", ["x"]),
        ("url(/*", "*", "*/)'url(y)'url(x)", ["x"]),
        ("/* (", "'", "*/url(x)", ["x"]),
        ('image-set("', "a", "\" 1x, 'x' 2x", ["x"]),
    ],
)
def test_no_style_sheet_holds_the_thread(
    monkeypatch: pytest.MonkeyPatch, begin: str, part: str, end: str, expected: list[str]
) -> None:
    """It may wait after every piece, of a sheet as of a token."""
    waits: list[None] = []
    monkeypatch.setattr(css, "breathe", lambda: waits.append(None))
    text = f"{begin}{part * (64 * PIECE_CHARS // len(part))}{end}"
    assert set(css_references(text)) == set(expected)
    assert len(waits) >= 32


def test_a_style_sheet_as_document(read: Read) -> None:
    css = "@charset \"utf-8\"; @import 'a'; b { c: url(d) url(data:,) url(#e) url(d) }"
    page = read(css, media_type="text/css", requisites=True)
    assert (page.links.requisites, page.links.pages, page.charset) == (["a", "d"], [], "utf-8")
    assert read(css, media_type="text/css").links.requisites == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", ["a"]),
        ("a 1x,b 2x", ["a", "b"]),
        (" a 100w , b 200w 300h,c", ["a", "b", "c"]),
        ("a,b", ["a,b"]),
        ("a, b", ["a", "b"]),
        ("a,, b", ["a", "b"]),
        ("a (x,y) , b", ["a", "b"]),
        ("data:image/png,xx 1x, b", ["data:image/png,xx", "b"]),
        (",", []),
        ("", []),
    ],
)
def test_srcset(value: str, expected: list[str]) -> None:
    assert list(srcset(value)) == expected


@pytest.mark.parametrize(
    ("begin", "part", "expected"), [("", "a 1x,", ["a"]), ("a ", "()", ["a", "x"]), ("a ", "b(,c)", ["a", "x"])]
)
def test_no_srcset_holds_the_thread(
    monkeypatch: pytest.MonkeyPatch, begin: str, part: str, expected: list[str]
) -> None:
    waits: list[None] = []
    monkeypatch.setattr(requisites, "breathe", lambda: waits.append(None))
    assert list(dict.fromkeys(srcset(f"{begin}{part * 100_000}, x"))) == list(dict.fromkeys([*expected, "x"]))
    assert len(waits) >= 64


def test_no_number_of_elements_holds_the_thread(monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    waits: list[None] = []
    monkeypatch.setattr(requisites, "breathe", lambda: waits.append(None))
    read("<p style=a></p>" * 1000, requisites=True)
    assert len(waits) >= 1000


@pytest.mark.parametrize("kind", list(Kind))
def test_what_is_beyond_the_scope_says_so_of_what_it_needs(read: Read, kind: Kind) -> None:
    """And of nothing else: where it redirects to is what is needed. Whatever comes back of it is beyond as before."""
    page = read("<img src=a><a href=b>", requisites=True)
    (visit,) = visits_of(url_batch([locate("http://a.example/")], kind=kind, depth=1))
    same = Kind.SECOND if kind is Kind.THIRD else kind
    assert batch_of([visit]) == url_batch([locate("http://a.example/")], kind=same, depth=1)
    page.exchange.visit = visit
    needed = {Kind.BEYOND: Kind.SECOND, Kind.SECOND: Kind.THIRD, Kind.THIRD: Kind.THIRD}.get(kind, Kind.REQUISITE)
    found = [(group.link_kind, group.kind) for group in groups_of(page)]
    assert found == [(LinkKind.PAGE, Kind.PAGE), (LinkKind.REQUISITE, needed)]
    page.exchange.outcome = Outcome.REDIRECTED
    (moved,) = groups_of(page)
    assert moved.kind == (Kind.REQUISITE if kind is Kind.BEYOND else same)
