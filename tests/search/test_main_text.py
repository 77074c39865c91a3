"""The main text of a page is what it says, lists too, without what leads elsewhere."""

import re
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from fyke.core import hidden
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.visits import Exchange, visit_to
from fyke.export.prose import markdown, plain
from fyke.harvest import Parser
from fyke.search.main_text import HTML_BYTES, is_deep, main_text
from search.webs import WORDS

HIDDEN = re.compile(f"[{hidden.HIDDEN}]")
ITEMS = ["Salt the water well before the beans go in.", "Drain them <b>and keep</b> a cup of it.", "Serve at once."]
LIST = "".join(f"<li>{item}</li>" for item in ITEMS)
PROSE = f"<p>{'The pot stands on the fire all day. ' * 12}</p>"


def page(html: str, *, shared: bool = True) -> Page:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=head)
    return Parser(shared=shared).parse(exchange, html.encode())


@pytest.mark.parametrize(
    "said",
    [
        "春天的河水慢慢地流过古老的石桥，" * 6,
        "はるのかわはしずかにはしをくぐり、" * 6,
        "봄의 강은 조용히 다리를 지나고 " * 6,
    ],
)
def test_a_short_text_without_an_alphabet_is_a_main_text(said: str) -> None:
    """It says as much in a third of the characters: what stands beside it is no part of it."""
    beside = f"<div class=sidebar><p>{'Other news of the day. ' * 20}</p></div>"
    short = page(f"<body><article><p>{said}</p></article>{beside}</body>")
    assert main_text(short).text == said.strip()
    assert plain(short) == said.strip()


READINGS = [
    "<ruby>春天<rt>はる</rt></ruby>",
    "<ruby>春天<rp>(</rp><rt>はる</rt><rp>)</rp></ruby>",
    "<ruby>春<rt>ha</rt>天<rt>ru</rt></ruby>",
    "<ruby>春<rt>ha<rt>2</rt>天<RT class=x>ru</ruby>",
    "<ruby><rb>春天</rb><rp>（</rp><rt><span>はる</span><b>!</b></rt><rp>）</rp></ruby>",
    "<ruby>春天<rp>(<rt>はる<rp>)</ruby>",
]


@pytest.mark.parametrize("around", ["<p>{}</p>", "<ul><li>{}</li></ul>", f"<article>{PROSE}<p>{{}}</p></article>"])
@pytest.mark.parametrize("written", READINGS)
def test_readings_above_letters_do_not_stand_between_them(written: str, around: str) -> None:
    """Else nobody finds the words that go on there."""
    said = f"{written}の河水慢慢地流过古老的石桥，" * 12
    for read in (lambda one: main_text(one).text, plain, markdown):
        assert read(page(around.format(said))) == read(page(around.format(said.replace(written, "春天"))))


@pytest.mark.parametrize("stray", ["<rt>", "<rp>", "<rt><p>", "<ruby><rt>"])
def test_a_reading_that_does_not_end_takes_no_text_away(stray: str) -> None:
    assert PROSE[3:-4].strip() in main_text(page(f"<body>{stray}{PROSE}")).text


@pytest.mark.parametrize("said", ["River. " * 20, "Река. " * 20, "桥。" * 5])
def test_where_the_main_text_is_little_all_is_taken(said: str) -> None:
    beside = f"<div class=sidebar><p>{'Other news of the day. ' * 40}</p></div>"
    assert "Other news" in main_text(page(f"<body><article><p>{said}</p></article>{beside}</body>")).text


@pytest.mark.parametrize("said", ["River. " * 20, "River. " * 200])
@pytest.mark.parametrize("name", ["class='left widget-area'", "class=related", "id=related", "class='related-posts x'"])
def test_what_leads_elsewhere_by_its_name_is_no_main_text(name: str, said: str) -> None:
    """Also where the main text is little, and all is taken else."""
    beside = f"<div {name}><h3>New</h3><p>{'Other news of the day. ' * 40}</p></div>"
    assert main_text(page(f"<body><div><p>{said}</p></div>{beside}</body>")).text == said.strip()


@pytest.mark.parametrize("said", ["River. " * 5, "River. " * 20])
@pytest.mark.parametrize("inside", ["<main><h1>Boats</h1><p>{}</p></main>", "<h1>Boats</h1>{}"])
def test_where_all_is_taken_it_is_without_navigation(inside: str, said: str) -> None:
    before = "<div role=dialog><p>We value your privacy.</p></div><header><nav><a href=/>Home</a></nav></header>"
    found = page(f"<body>{before}{inside.format(said)}<footer><p>Imprint</p></footer></body>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert "Boats" in text and said.strip() in text
        assert not any(word in text for word in ("privacy", "Home", "Imprint"))


def test_a_page_that_is_navigation_alone_is_exported() -> None:
    menu = page("<body><nav><a href=/a>The first chapter</a> <a href=/b>The second chapter</a></nav></body>")
    for text in (plain(menu), markdown(menu)):
        assert "The first chapter" in text and "The second chapter" in text


@pytest.mark.parametrize("inside", ["{}", "<main>{}</main>", "<div><article>{}</article></div>", "<div>" * 9 + "{}"])
@pytest.mark.parametrize(
    "listed", [f"<ul>{LIST}</ul>", f"<UL class=a>{LIST}</UL >", f"<ul>{LIST}", f"</ul><ul>{LIST}</ul>"]
)
def test_what_a_list_says_is_said_wherever_it_stands(inside: str, listed: str) -> None:
    found = page(f"<body>{inside.format(PROSE + listed + PROSE)}")
    lines = main_text(found).text.split("\n")
    assert [line for line in lines if "stands" not in line] == [
        item.replace("<b>", "").replace("</b>", "") for item in ITEMS
    ]
    assert "- Serve at once." in markdown(found).split("\n")
    assert "Serve at once." in plain(found)


def test_a_list_in_a_list_stays_in_it() -> None:
    inner = f"<ul><li>One of three.<ul>{LIST}</ul></li><li>Last of all.</li></ul>"
    text = markdown(page(f"<body><main>{PROSE}{inner}{PROSE}</main></body>"))
    assert "- One of three.\n  - Salt the water" in text and "\n- Last of all." in text


THREE_BYTES = st.characters(min_codepoint=0x800, max_codepoint=0xFFFF, categories=["L", "N", "S", "P"])
HOLDERS = ["b", "i", "span", "ruby", "a", "em", "code", "p", "div", "my-element", "td"]


@settings(deadline=None, max_examples=300)
@given(THREE_BYTES, st.sampled_from(HOLDERS), st.sampled_from(["{}", " {}\n", "{}<br>", "<b></b>{}"]), st.booleans())
@example("月", "td", "{}", False)
@example("\u20ac", "span", "{}", False)
@example("✓", "td", "{}", False)
def test_a_character_alone_in_an_element_is_said(letter: str, holder: str, around: str, as_reference: bool) -> None:
    """Whatever its alphabet; words, prices, answers and cells of a table may be one character long."""
    written = around.format(f"&#x{ord(letter):x};" if as_reference else letter)
    inside = f"<{holder}>{written}</{holder}>"
    if holder == "td":
        inside = f"<table><tr><th>word<th>word</tr><tr>{inside}<td>word</tr></table>"
    found = page(f"<body><main>{PROSE}<p>before {inside} behind</p>{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert letter in text and HIDDEN.search(text) is None


@pytest.mark.parametrize("icon", ["\ue000", "\uf0c9", "&#xf015;", "&#xE900;", "&#59392;", "&#63743;"])
def test_a_sign_of_an_icon_font_is_not_said(icon: str) -> None:
    found = page(f"<body><main>{PROSE}<p>before <i class=icon>{icon}</i> behind</p>{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert "before behind" in text


@pytest.mark.parametrize("tag", ["button", "label"])
@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("<p>Press {} to keep it.</p>", "Press Save as to keep it."),
        ("<h3>{}</h3><p>It is kept.</p>", "Save as"),
        ("<table><tr><th>{}<th>b<tr><td>c<td>d</table>", "Save as"),
        ("<dl><dt>{}<dd>It is kept.</dl>", "Save as"),
    ],
)
def test_buttons_and_labels_in_the_text_are_said(tag: str, inside: str, said: str) -> None:
    found = page(f"<body><main>{PROSE}{inside.format(f'<{tag} class=x>Save as</{tag}>')}{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert said in text


@pytest.mark.parametrize("item", ["<label><input type=checkbox> Salt</label>", "<input type=radio><label>Salt</label>"])
def test_labels_of_a_list_are_said(item: str) -> None:
    found = page(f"<body><main>{PROSE}<ul><li>{item}<li>Serve at once.</ul>{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert "Salt" in text


@pytest.mark.parametrize("form", ["<button>Menu</button>", "<ul><li><button>Menu</button></ul>", "<label>Menu</label>"])
def test_buttons_of_a_menu_and_labels_of_a_form_are_not(form: str) -> None:
    found = page(f"<body><main><form>{form}<input></form>{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert "Menu" not in text


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ("<figcaption>How to cook</figcaption><pre>boil(pot)</pre>", "boil(pot)"),
        ("<div><table><tr><td><pre>1</pre><td><pre>boil(pot)</pre></table></div>", "boil(pot)"),
        ("<table><tr><td>pot<td>fire</table>", "pot fire"),
        ("<blockquote>A pot on the fire.</blockquote><figcaption>A cook</figcaption>", "A pot on the fire."),
    ],
)
def test_a_figure_that_is_text_is_said(figure: str, said: str) -> None:
    found = page(f"<body><main>{PROSE}<figure class=x>{figure}</figure>{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert set(said.split()) <= set(text.replace(PROSE[3:-4].strip(), "").split())


@pytest.mark.parametrize(
    "named",
    [
        "<a rel=author href=/by/9>Jelle Ypma</a>",
        '<A class="fn" REL = "author"\n itemprop=url href="/a>b">Jelle Ypma</A>',
        "<span itemprop='author'>Jelle Ypma</span>",
        '<a href=/b/9 itemprop="url">Jelle Ypma</a>',
        "<span itemprop=datePublished content=2001-02-03>Jelle Ypma</span>",
    ],
)
@pytest.mark.parametrize("around", ["<p>By {} at sea</p>", "<h2>By {} at sea</h2>", "<div><b>By {}</b> at sea</div>"])
def test_names_and_dates_that_a_page_marks_as_such_are_said(named: str, around: str) -> None:
    holding = page(f"<body><article>{PROSE}{around.format(named)}{PROSE}</article></body>")
    for text in (main_text(holding).text, plain(holding), markdown(holding)):
        assert "Jelle Ypma" in text


def test_what_only_reads_like_a_mark_stays_as_it_is() -> None:
    code = 'Write <code>&lt;a rel="author"&gt;</code>, or say rel="author" or itemprop=url in <b>words</b>.'
    said = 'Write <a rel="author">, or say rel="author" or itemprop=url in words.'
    for text in (main_text(page(f"<body><p>{code}</p>{PROSE}")).text, plain(page(f"<body><p>{code}</p>{PROSE}"))):
        assert said in text


@pytest.mark.parametrize("tag", ["<time>", '<TIME datetime="2001-02-03">', "<time\nclass=dt-bday>"])
def test_a_time_in_a_sentence_is_a_part_of_it(tag: str) -> None:
    found = page(f"<body><main>{PROSE}<p>Born on {tag}3 February 2001</time> in Fryslan.</p>{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert "Born on 3 February 2001 in Fryslan." in text


@pytest.mark.parametrize(
    "written", ["<details><summary>What?</summary>That.</details>", "<fieldset><legend>What?</legend>That.</fieldset>"]
)
def test_a_summary_is_a_line_of_its_own(written: str) -> None:
    found = page(f"<body><main>{PROSE}{written}{PROSE}</main>")
    for text in (main_text(found).text, plain(found), markdown(found)):
        assert {"What?", "That."} <= set(text.split("\n"))


@pytest.mark.parametrize("depth", [0, 1, 3, 6])
def test_a_menu_without_a_name_is_no_main_text(depth: int) -> None:
    menu = "".join(f"<li><a href='/{name}'>{name} and more</a></li>" for name in WORDS[:8])
    found = main_text(page(f"<body>{'<div>' * depth}<ul>{menu}</ul>{PROSE}"))
    assert "and more" not in found.text and "stands on the fire" in found.text


TAGS = ["<ul>", "</ul>", "<li>", "<p>", "</p>", "<div>", "</div>", "<ol>", "</ol>", "<table>"]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(TAGS), max_size=30))
def test_whatever_stands_open_no_word_comes_twice(tags: list[str]) -> None:
    words = [f"word{number}" for number in range(len(tags) + 1)]
    body = words[0] + "".join(f" {tag}{word}" for tag, word in zip(tags, words[1:], strict=True))
    found = main_text(page(f"<body>{PROSE} {body}")).text.replace("The pot stands on the fire all day.", "").split()
    assert len(found) == len(set(found)) and set(found) <= set(words)


@pytest.mark.parametrize(
    "worst",
    [
        "<ul>",
        "</ul>",
        "<ul></ul>",
        "<ul",
        "</ul",
        "<ul><li>a</ul>",
        "<div class=comment>",
        "<a rel=author>",
        "<a rel ",
        " rel =author",
        "<div>a",
        "<span>a",
        "a<b>",
        "<h2><a href=x>a</a></h2>",
        "<div><h2><a href=x>a",
        "<p>a</p>",
        "<div><p>one two three</div>",
        "<pre>a\n\na",
        "<pre> \n",
        "<a href=x><h3>a",
        "<li><a href=x><h3>a</h3></a>b</li>",
        "<td>a",
        "<svg><path/>",
        "<svg><g/><path d=1/></svg>",
        "<table><tr><td>a b c",
    ],
)
def test_work_is_linear_in_the_page(worst: str) -> None:
    def seconds(size: int) -> float:
        found = page("<body>" + worst * (size // len(worst)))
        begun = process_time()
        main_text(found, parts=True)
        return process_time() - begun

    small = min(seconds(HTML_BYTES // 16) for _ in range(3))
    assert seconds(HTML_BYTES) < 16 * 4 * small + 0.5


AROUND = "".join(f"<div class=d{'x' * (number % 7)}>" for number in range(900))


@pytest.mark.parametrize(
    "html",
    [
        *(
            AROUND + inner * count
            for count in (9_000, 20_000)  # nearly, and just, too much
            for inner in ("<div class=c>a b c</div>", "<span>a</span>", "<h2><a href=x>a</a></h2>", "<b>a")
        ),
        "<h2><div>" * 400 + "a word or two " * 20_000,
    ],
    ids=[
        *(f"{count} {what}" for count in (9_000, 20_000) for what in ("blocks", "spans", "headings", "open")),
        "nested headings",
    ],
)
def test_work_is_linear_in_a_page_that_is_about_too_deep(html: str) -> None:
    found = page(f"<body>{html}")
    begun = process_time()
    main_text(found)
    before = process_time() - begun
    main_text(found, parts=True)
    assert process_time() - begun < 3 * before + 3


@pytest.mark.parametrize("stray", ["", "</i>" * 3_000, "a</div>\n" * 3_000])
@pytest.mark.parametrize(("depth", "elements"), [(1_001, 4_000), (900, 20_000), (60, 180_000)])
def test_what_nests_deeply_is_seen_whatever_stands_before_it(stray: str, depth: int, elements: int) -> None:
    """Each element costs what is around it: 900 around each of 20,000 took ten seconds."""
    assert is_deep(f"<body>{stray}{'<div>' * depth}{'<b>a</b>' * elements}")
    assert not is_deep(f"<body>{stray}{'<div>' * (depth // 2)}{'<b>a</b>' * (elements // 3)}")
    assert not is_deep(f"<body>{stray}{'<video><source src=a><track src=b></video><area>' * 4_000}")


@pytest.mark.parametrize("before", ["<svg>", "<math>", "<svg><title>", '<div a="<svg>', ""])
@pytest.mark.parametrize(
    "tag",
    [
        "link",
        "input",
        "td",
        "option",
        "wbr",
        "source",
        "br",
        "embed",
        "hr",
        "meta",
        "p",
        "li",
        "dd",
        "g",
        "path /",
        "p-x",
    ],
)
def test_no_element_nests_unseen(before: str, tag: str) -> None:
    """What ends itself in HTML nests in a drawing, and so does a name that only begins like another."""
    html = f"<body>{before}{f'<{tag}>' * 4_000}"
    deepest, node = 0, HTMLTree.parse(html).body
    while node is not None and deepest <= 2_000:
        deepest, node = deepest + 1, node.last_child
    assert is_deep(html) or deepest < 1_000


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["<ul>", "<OL><li>a", "</ul>", "<li>x", "<br>x"]), st.integers(0, 6_000)), max_size=5
    )
)
@example([("<ul><li>a", 900), ("<li>x", 30_000)])
def test_what_is_not_deep_has_text_in_proportion(tags: list[tuple[str, int]]) -> None:
    """Each level of lists begins each of its lines with two blanks more."""
    html = "<body>" + "".join(tag * count for tag, count in tags)
    assert is_deep(html) or len(extract_plain_text(html)) < (8 << 20) + 8 * len(html)


def test_lists_within_lists_are_read_as_lists() -> None:
    within = "<ul><li>Salt<ul><li>of the sea<li>of the mines</ul></ul>"
    assert not is_deep("<body>" + within * 2_000 + "</ul>" * 2_000 + "<li>a" * 20_000)


@pytest.mark.parametrize(
    "name", ["id=comments", "class='post comment odd'", "class=reviews", "itemprop=review", "class=signature"]
)
def test_comments_are_told_by_their_names(name: str) -> None:
    html = f"<body><main>{PROSE}<div {name}><p>I never liked beans.</p></div></main></body>"
    found = main_text(page(html), parts=True)
    assert found.parts.visitors == "I never liked beans." and "never liked" in found.text
    assert "never liked" not in found.parts.article + found.parts.beside + found.parts.repeated


@pytest.mark.parametrize("lines", [1_000, 400_000])
def test_a_log_of_one_element_says_something_however_long_it_is(lines: int) -> None:
    log = page("<title>x</title><pre>" + "line of the log 0123456789\n" * lines)
    assert log.title == "x"
    assert main_text(log).text.startswith("line of the log 0123456789\nline of")
    assert plain(log).startswith("line of the log")
