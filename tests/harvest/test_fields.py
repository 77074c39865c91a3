"""What pages say as rows: by selectors and paths, whatever the page holds."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.archive.tables import rows_batch
from fyke.core.choices import FieldType
from fyke.core.config import build
from fyke.core.document import Document
from fyke.core.errors import ConfigurationError
from fyke.core.markup import TakesLong
from fyke.core.outcomes import Outcome
from fyke.core.pace import haste
from fyke.core.pages import Page
from fyke.core.visits import Exchange, visit_to
from fyke.harvest import Parser
from fyke.harvest import fields as fields_module
from fyke.harvest.fields import HASTY_CHARS, MOST_PAGE_CHARS, MOST_ROWS, MOST_VALUES, NODE_CHARS, Extractor

URL = "http://shop.example/product/7"


def page(html: str | bytes, url: str = URL, kind: str = "text/html; charset=utf-8") -> Page:
    body = html.encode() if isinstance(html, str) else html
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
    exchange = Exchange(visit_to(url), Outcome.OK, 0.0, 0.0, head=head, body=Document(body))
    return Parser().parse(exchange, body)


def extractor(fields: dict[str, Any], **keys: str) -> Extractor:
    section = {"table": "things", "fields": fields, **keys}
    return Extractor(build({"extract": [section]}, "test").extract[0])


def said(html: str, fields: dict[str, Any], **keys: str) -> list[dict[str, Any]]:
    made = extractor(fields, **keys)
    return [dict(zip(made.schema.names, row, strict=True)) for row in made.rows(page(html))]


SHOP = """<html><head><base href="/shop/"><script type="application/ld+json">
{"@context": "https://schema.org", "@graph": [
  {"@type": ["Product", "Thing"], "name": "Net", "offers": [{"price": "19.90"}, {"price": 18}], "sku": 7},
  {"@type": "Organization", "name": "Shop"}]}</script></head>
<h1> A  <b>net</b>\n</h1><p class=price>1.299,00 €</p>
<a class=more href="x?y#z">more</a><i class=tag>a</i><i class=tag> </i><i class=tag>b</i></html>"""


def test_what_people_ask_for() -> None:
    fields = {
        "name": "h1", "price": {"select": "p.price", "type": "number"}, "none": "h2",
        "more": {"select": "a.more::attr(href)", "type": "url"}, "tags": {"select": ".tag", "many": True},
        "sold": {"select": "json:Product.offers.price", "type": "number", "many": True},
        "sku": {"select": "json:sku", "type": "integer"}, "by": "json:Organization.name", "nothing": "json:Offer.price",
        "class": "i::attr(class)",
    }  # fmt: skip
    assert said(SHOP, fields) == [
        {
            "url": URL, "name": "A net", "price": 1299.0, "none": None, "more": "http://shop.example/shop/x?y",
            "tags": ["a", "b"], "sold": [19.9, 18.0], "sku": 7, "by": "Shop", "nothing": None, "class": "tag",
        }
    ]  # fmt: skip


def test_a_row_for_each() -> None:
    html = "<div class=q><b>1</b><a href=/a>x</a></div><div class=q><b>2</b></div><div class=q></div>"
    fields = {"number": {"select": "b", "type": "integer"}, "link": "a::attr(href)", "whole": "::text"}
    assert said(html, fields, each="div.q") == [
        {"url": URL, "number": 1, "link": "/a", "whole": "1x"},
        {"url": URL, "number": 2, "link": None, "whole": "2"},
    ]


@pytest.mark.parametrize(("count", "cut"), [(MOST_VALUES, False), (MOST_VALUES + 1, True)])
@pytest.mark.parametrize("select", ["i", "json:a"])
def test_a_page_with_more_values_than_are_kept_is_cut(select: str, count: int, cut: bool) -> None:
    script = f'<script type="application/ld+json">{{"a": {json.dumps(list(range(count)))}}}</script>'
    found = page(script + "<i>x</i>" * count)
    (row,) = extractor({"n": {"select": select, "many": True}}).rows(found)
    assert len(row[1]) == MOST_VALUES and found.cut is cut


@pytest.mark.parametrize(("count", "cut"), [(MOST_ROWS, False), (MOST_ROWS + 1, True)])
def test_a_page_with_more_rows_than_are_kept_is_cut(count: int, cut: bool) -> None:
    found = page("<i>x</i>" * count)
    assert len(extractor({"n": "::text"}, each="i").rows(found)) == MOST_ROWS and found.cut is cut


def test_only_pages_that_match_and_have_something() -> None:
    assert said("<h1>x</h1>", {"name": "h1"}, match="/product/[0-9]+$")
    assert not said("<h1>x</h1>", {"name": "h1"}, match="/category/")
    assert not said("<h2>x</h2>", {"name": "h1", "tags": {"select": "h3", "many": True}})
    assert not extractor({"name": "h1"}).rows(page("<h1>x</h1>", kind="text/plain"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1299", 1299), ("1,299.00", 1299), ("1.299,00", 1299), ("1,299", 1299), ("1.299", 1.299), ("12,5 €", 12.5),
        ("€ 1 299,50", 1299.5), ("1\u202f299,50", 1299.5),
        ("12 345 678 kr", 12345678), ("-1 234.5", -1234.5), ("2024 100", 2024), ("555 123 4567", 555), ("1 23", 1),
        ("1  234", 1), ("1 234 2 left", 1), ("1 299 ,-", 1299),
        ("1.234.567", 1234567), ("1'234.5", 1234.5), ("-3.", -3),
        ("−3,5", -3.5), ("about 12,345,678.9 or 3", 12345678.9), ("none", None), ("", None), ("1" * 60, None),
        (".5", 0.5), ("-.5", -0.5), ("costs $.99", 0.99), ("No.5", 5), ("0,001", 0.001), ("-0,125", -0.125),
        ("1e3", 1000), ("-1.5E+2 m", -150), ("2,5e−3", 0.0025), ("1e3, or 2", 1000), ("1e3x", 1), ("B1e3", 1),
        ("1234,567", 1234.567), ("12 345,678", 12345.678), ("-12,345", -12345),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(text: str, number: float | None) -> None:
    found = said(f"<p>{text}</p><h1>x</h1>", {"n": {"select": "p", "type": "number"}, "name": "h1"})[0]["n"]
    assert found == number or (number is None and text == "1" * 60 and found > 1e30)


@pytest.mark.parametrize(
    ("language", "number", "whole"),
    [("lang=de", 1299, 1299), ("lang=pt-BR", 1299, 1299), ("lang=en", 1.299, None), ("lang", 1.299, None),
     ("", 1.299, None), ("lang=de-CH", 1.299, None)],
)  # fmt: skip
def test_the_language_of_a_page_says_what_a_point_is(language: str, number: float, whole: int | None) -> None:
    """In its texts. Attributes and JSON-LD are written by programs."""
    html = f"""<html {language}><script type="application/ld+json">{{"price": "1.299"}}</script>
    <p content=1.299>1.299 €</p></html>"""
    fields = {
        "shown": {"select": "p", "type": "number"}, "whole": {"select": "p", "type": "integer"},
        "attribute": {"select": "p::attr(content)", "type": "number"},
        "json": {"select": "json:price", "type": "number"},
    }  # fmt: skip
    assert said(html, fields) == [{"url": URL, "shown": number, "whole": whole, "attribute": 1.299, "json": 1.299}]


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12), st.booleans())
def test_a_number_is_read_as_it_was_written(value: float, german: bool) -> None:
    text = f"{value:,.2f}"
    if german:
        text = text.translate(str.maketrans(".,", ",."))
    found = said(f"<p>{text}</p>", {"n": {"select": "p", "type": "number"}})
    assert found[0]["n"] == float(f"{value:.2f}")


@pytest.mark.parametrize("line", ["<br>", "<br/>", "<BR CLASS=a>", "</br>", "<br>\n", "<br><br>"])
@pytest.mark.parametrize("select", ["address", "address::text"])
def test_a_new_line_parts_words(line: str, select: str) -> None:
    found = page(f"<address>Buorren <b>1</b>{line}9001 A{line}<i>Fryslan</i></address>")
    for _ in range(2):
        assert extractor({"a": select}).rows(found) == [(URL, "Buorren 1 9001 A Fryslan")]


INLINE = st.sampled_from(["b", "span", "i", "code", "x-y"])
BLOCKS = st.sampled_from(["div", "section", "article", "blockquote", "fieldset", "figure", "main"])
HIDDEN = st.sampled_from(["script", "style", "noscript", "template", "iframe"])
WORDS = st.text("ab1 \n", max_size=4)
# What is written, and what it says.
SPOKEN = st.recursive(
    WORDS.map(lambda words: (words, words)) | st.just(("<br>", "\n")) | st.just(("<!--c-->", "")),
    lambda inner: st.lists(
        st.tuples(INLINE, inner).map(lambda one: (f"<{one[0]}>{one[1][0]}</{one[0]}>", one[1][1]))
        | st.tuples(BLOCKS, inner).map(lambda one: (f"<{one[0]}>{one[1][0]}</{one[0]}>", f"\n{one[1][1]}\n"))
        | st.tuples(HIDDEN, WORDS).map(lambda one: (f"<{one[0]}>{one[1]}</{one[0]}>", "")),
        max_size=4,
    ).map(lambda parts: ("".join(html for html, _ in parts), "".join(words for _, words in parts))),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300)
@given(SPOKEN, SPOKEN)
def test_a_text_within_another_is_the_same_as_alone(one: tuple[str, str], other: tuple[str, str]) -> None:
    """It is a part of the one around it, and not read again."""
    html = f"<div class=a>{one[0]}<section>{other[0]}</section>{one[0]}</div><p>{other[0]}<i>end</i>"
    for selector in ("section", ".a", "p", "i", "b", "div", "span", "article", "script, noscript, template"):
        alone = said(html, {"text": {"select": f"{selector}", "many": True}})
        within = said(html, {"around": "body", "text": {"select": f"{selector}", "many": True}})
        assert [row["text"] for row in alone] == [row["text"] for row in within if row["text"]], selector


@settings(max_examples=300)
@given(SPOKEN, SPOKEN)
def test_blocks_part_words_and_what_nobody_sees_is_left_out(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Elements within a line part no words."""
    html = f"<h1>x</h1><div class=a>{one[0]}</div><span class=b>{other[0]}</span><p>end"
    for cls, words in ("a", one[1]), ("b", other[1]):
        assert said(html, {"name": "h1", "text": f".{cls}"})[0]["text"] == (" ".join(words.split()) or None)


TAGS = [
    "a",
    "b",
    "p",
    "div",
    "ul",
    "li",
    "td",
    "table",
    "tr",
    "option",
    "select",
    "svg",
    "br",
    "h1",
    "!--c--",
    "![CDATA[",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*(f"<{tag}>" for tag in TAGS), *(f"</{tag}>" for tag in TAGS[:12]), "x", " y"])))
def test_nothing_else_is_left_out_or_added(parts: list[str]) -> None:
    """In whatever order its tags are."""
    html = "<h1>x</h1><div class=a>" + "".join(parts)
    made = page(html)
    node = made.tree.css_first(".a")
    assert node is not None
    ((_, _, found),) = extractor({"name": "h1", "text": ".a"}).rows(made)
    assert (found or "").replace(" ", "") == "".join(node.text().split())


@pytest.mark.parametrize(
    ("html", "select", "text"),
    [
        ("<div class=a><div>Strjitte 5</div><div>9001 A</div></div>", ".a", "Strjitte 5 9001 A"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><th>3</th><td>4<b>5</b></td></tr></table>", "table", "1 2 3 45"),
        ("<div><p>One</p><p>Two</p></div>three", "body", "One Two three"),
        ("<ul><li>a<li>b</ul><dl><dt>c<dd>d</dl>", "body", "a b c d"),
        ("<select><option>S<option>M</select>", "select", "S M"),
        ("<i>a</i><hr><i>b</i><h2>c</h2><i>d</i>", "body", "a b c d"),
        ("<p><a>N</a><span>e</span>t</p>", "p", "Net"),
        ("<i class=a><span><div>a</div></span>b</i>", ".a", "a b"),
        ("<title>T</title><p>x", "html", "T x"),
        ("<div>Nice mug.<script>track(1)</script><style>.x{}</style></div>", "div", "Nice mug."),
        ("<div>a<noscript>b<p>c<noscript>d</noscript></p></noscript></div>e", "div", "a"),
        ("<div><noscript>b</noscript></div>", "noscript", "b"),
        ("<div><noscript>b<p>c</p></noscript></div>", "noscript p", "c"),
        ("<div><script>track(1)</script></div>", "script", "track(1)"),
        ("<div><script>track(1)</script></div>", "div > script::text", "track(1)"),
        ("<style>.x{}</style>", "style", ".x{}"),
    ],
)
def test_what_an_element_says(html: str, select: str, text: str) -> None:
    assert said(html, {"text": select}) == [{"url": URL, "text": text}]
    each = select.removesuffix("::text")
    assert said(html, {"text": "::text"}, each=each) == [{"url": URL, "text": text}]


@pytest.mark.parametrize("between", ["<br>", "</td><td>", "</td></tr><tr><td>"])
@pytest.mark.parametrize("kind", ["number", "integer"])
def test_numbers_of_two_blocks_are_two(between: str, kind: str) -> None:
    html = f"<table><tr><td>12{between}345</table>"
    assert said(html, {"n": {"select": "table", "type": kind}}) == [{"url": URL, "n": 12}]


@pytest.mark.parametrize(("written", "text"), [("true", "true"), ("false", "false"), ("null", None)])
@pytest.mark.parametrize("many", [False, True])
def test_whether_something_holds_is_said_as_in_json(written: str, text: str | None, many: bool) -> None:
    """It is a text, and no number."""
    script = f'<script type="application/ld+json">{{"@type": "Article", "isAccessibleForFree": {written}}}</script>'
    none: Any = [] if many else None
    for kind in ("text", "number", "integer", "url"):
        free = {"select": "json:Article.isAccessibleForFree", "type": kind, "many": many}
        expected = none if kind != "text" or text is None else [text] if many else text
        assert said(f"{script}<h1>x</h1>", {"free": free, "name": "h1"})[0]["free"] == expected


@given(st.integers(-(1 << 63) + 1, (1 << 63) - 1), st.sampled_from(["{}", "{:,}", "{}.00", "no {} "]), st.booleans())
def test_an_integer_keeps_every_digit(value: int, written: str, stated: bool) -> None:
    """Identifiers have more than a float has."""
    script = f'<script type="application/ld+json">{{"id": {value}}}</script>'
    html = script if stated else f"<p>{written.format(value)}</p>"
    assert said(html, {"n": {"select": "json:id" if stated else "p", "type": "integer"}}) == [{"url": URL, "n": value}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["@type", "@graph", "a", "b", "Product"]), inner, max_size=3)
    ),
    max_leaves=12,
)
EVERY_KIND = {
    f"{kind}_{number}{'s' if many else ''}": {"select": select, "type": kind, "many": many}
    for number, select in enumerate(["p", "p::attr(a)", "json:a", "json:Product.a.b", "json:@graph"])
    for kind in ("text", "number", "integer", "url")
    for many in (False, True)
}


@given(st.one_of(JSON.map(json.dumps), st.text(max_size=50)), st.text(max_size=50), st.binary(max_size=60))
def test_whatever_a_page_holds(data: str, text: str, raw: bytes) -> None:
    """Rows come, and fit the columns of their table."""
    made = extractor(EVERY_KIND)
    script = data.replace("</", "<\\/").encode("utf-8", "replace")
    html = b"<script type='application/ld+json'>%b</script><p a='%b'>%b</p>" % (
        script,
        text.encode("utf-8", "replace"),
        raw,
    )
    for row in made.rows(page(html)):
        assert len(row) == len(made.schema)
        assert rows_batch([row], made.schema).num_rows == 1


SAID = '{"@type": "Product", "name": "a\nb /* <!-- ]]> */"}'


@pytest.mark.parametrize(
    "written",
    [
        "{}", " \n{}\n ", "<!-- {} -->", "<!--\n{}\n//-->", "//<![CDATA[\n{}\n//]]>", "/* <![CDATA[ */{}/* ]]> */",
        "<![CDATA[{}]]>", "{};",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["Product", "http://schema.org/Product", "https://schema.org/Product", "s:Product"])
def test_json_as_it_is_written(written: str, kind: str) -> None:
    """In a comment, with lines that end within a text, of a type with its address: as extractors of others read it."""
    html = f"<script type='application/ld+json'>{written.format(SAID.replace('Product', kind))}</script>"
    assert said(html, {"name": "json:Product.name"}) == [{"url": URL, "name": "a b /* <!-- ]]> */"}]


def test_numbers_that_are_none_are_null_and_cost_nothing_beside_them() -> None:
    data = '{"@type": "Product", "name": "plum", "sku": %s, "price": NaN, "rating": -Infinity}' % ("9" * 5000)
    fields = {name: f"json:Product.{name}" for name in ("name", "sku", "price", "rating")}
    found = said(f"<script type='application/ld+json'>{data}</script>", fields)
    assert found == [{"url": URL, "name": "plum", "sku": None, "price": None, "rating": None}]


def test_deep_json_and_many_elements() -> None:
    deep = "[" * 100_000
    html = f"<script type='application/ld+json'>{deep}</script>" + "<p>x</p>" * 30_000
    assert len(said(html, {"one": "::text"}, each="p")) == 10_000
    assert len(said(html, {"all": {"select": "p", "many": True}})[0]["all"]) == 1_000


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"table": "pages", "fields": {"a": "b"}}, ["pages", "another name"]),
        ({"table": "My Table", "fields": {"a": "b"}}, ["'My Table'", "small letters"]),
        ({"table": "x", "fields": {"A b": "b"}}, ["'A b'"]),
        ({"table": "x", "fields": {}}, ["name the fields"]),
        ({"table": "x", "fields": {"url": "b"}}, ["url is always there"]),
        ({"table": "x", "fields": {"a": "p["}}, ["a = 'p['", "not a CSS selector"]),
        ({"table": "x", "fields": {"a": ""}}, ["a has no selector"]),
        *(({"table": "x", "fields": {"a": f"json:{path}"}}, ["empty step"]) for path in ("", ".", "..", "a.", "a..b")),
        ({"table": "x", "fields": {"a": "b"}, "each": ">>"}, ["each = '>>'"]),
        ({"table": "x", "fields": {"a": "b"}, "match": "("}, ["match = '('"]),
        ({"table": "x", "fields": {"a": {"select": "b", "type": "money"}}}, ["fields.a.type = 'money'", "'integer'"]),
        (
            {"table": "x", "fields": {"a": {"css": "b"}}},
            ["unknown key extract.0.fields.a.css", "known here: select, type"],
        ),
        ({"table": "x"}, ["fields"]),
    ],
)
def test_mistakes(section: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Extractor(build({"extract": [section]}, "fyke.toml").extract[0])
    assert all(word in str(raised.value) for word in words), raised.value
    assert "\n" not in str(raised.value)


def test_places_in_each_other_make_no_more_text_than_a_page_may() -> None:
    rows = said("<div>some words " * 3_000, {"text": "::text"}, each="div")
    assert 100 < len(rows) < 3_000
    assert sum(len(row["text"]) for row in rows) < 2 * MOST_PAGE_CHARS


def test_json_is_looked_through_once_however_many_places_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    along = fields_module._along
    monkeypatch.setattr(fields_module, "_along", lambda data, path: looked.append(path[-1]) or along(data, path))
    data = json.dumps([{"@type": "Product", "name": "Net"}] * 500)
    html = f"<script type='application/ld+json'>{data}</script>" + "<p class=i>x</p>" * 500
    rows = said(html, {"name": "json:Product.name", "sku": "json:Product.sku", "text": "::text"}, each=".i")
    assert rows == [{"url": URL, "name": "Net", "sku": None, "text": "x"}] * 500
    assert looked == ["name", "sku"]


def _read_by(kind: FieldType, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long each text is of which a value of that kind is asked from now on."""
    sizes: list[int] = []
    read = fields_module._READ[kind]
    monkeypatch.setitem(fields_module._READ, kind, lambda text, page: sizes.append(len(text)) or read(text, page))
    return sizes


def test_places_in_each_other_are_not_looked_through_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing is found in them; what was found before stays."""
    looked = _read_by(FieldType.TEXT, monkeypatch)
    html = "<div class=i><b>x</b>" + "<div class=i>" * 250 + "<i class=n></i>" * 10_000
    assert said(html, {"name": "b", "tags": {"select": ".n", "many": True}}, each=".i")[0]["name"] == "x"
    assert 10_000 < len(looked) < MOST_PAGE_CHARS // NODE_CHARS


def test_texts_without_a_number_are_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _read_by(FieldType.NUMBER, monkeypatch)
    html = "<div>" * 300 + "x" * 200_000
    assert not said(html, {"number": {"select": "div", "type": "number", "many": True}})
    assert 10 < len(looked) < 300
    assert sum(looked) <= MOST_PAGE_CHARS


def test_json_in_every_row_counts_each_time() -> None:
    data = json.dumps({"tags": [*range(1_000)]})
    html = f"<script type='application/ld+json'>{data}</script>" + "<p>x</p>" * 10_000
    rows = said(html, {"tags": {"select": "json:tags", "many": True, "type": "integer"}}, each="p")
    assert 100 < len(rows) <= MOST_PAGE_CHARS // (NODE_CHARS * 1_000) + 1


@pytest.mark.parametrize(
    "html",
    [
        "<p>x</p>" * (HASTY_CHARS // NODE_CHARS),
        "<p>" + "<p>".join(["x" * 1_000] * (HASTY_CHARS // 1_000)),
        f"<script type='application/ld+json'>{json.dumps([{}] * 9_000)}</script>" + "<p>x</p>" * 7_000,
        "<p>" + "<i></i>" * (HASTY_CHARS // NODE_CHARS) + "x",
    ],
)
def test_what_has_many_rows_is_not_read_while_others_wait(html: str) -> None:
    made = extractor({"text": "::text", "sku": "json:Product.sku"}, each="p")
    large, small = page(html), page("<p>x</p>" * 100)
    with haste():
        assert len(made.rows(small)) == 100
        with pytest.raises(TakesLong):
            made.rows(large)
    assert made.rows(large)
