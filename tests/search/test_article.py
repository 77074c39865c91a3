"""The article of a page is what its copy in another template has too."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.search import article
from fyke.search.article import LEAST_CARDS, MOST_CUT_CHARS, TextParts, parted
from fyke.search.holders import MOST_NODES
from fyke.search.main_text import main_text
from search.test_main_text import page
from search.webs import WORDS

Template = Callable[[str, Random], str]


def sentence(dice: Random, words: int = 12) -> str:
    return " ".join(dice.choices(WORDS, k=words)).capitalize() + "."


def paragraphs(dice: Random, count: int = 6) -> list[str]:
    return [" ".join(sentence(dice) for _ in range(3)) for _ in range(count)]


def article_of(html: str) -> str:
    return main_text(page(html), parts=True).parts.article


def blog(said: str, dice: Random) -> str:
    cards = "".join(
        f"<li class='post-{n}'><a href=/{n}><h3>{sentence(dice, 5)}</h3></a><p>{sentence(dice)}</p></li>" for n in "abc"
    )
    visitors = "".join(f"<div class=comment><p>{sentence(dice)}</p></div>" for _ in range(9))
    return (
        f"<body><div id=top>{sentence(dice)}</div><div class=page><h1>A title</h1><div class=entry>{said}"
        f"<ul class=more>{cards}</ul></div><div class=replies>{visitors}</div></div><div id=end>{sentence(dice)}</div>"
    )


def tables(said: str, dice: Random) -> str:
    aside = "".join(f"<tr><td>{sentence(dice, 6)}</td></tr>" for _ in range(8))
    return (
        f"<body><table><tr><td width=150><table>{aside}</table></td><td>{said}</td></tr></table>"
        f"<center>{sentence(dice)}</center>"
    )


def cards(said: str, dice: Random) -> str:
    other = "".join(
        f"<div class=card><a href=/x{n}><div>{sentence(dice, 4)}</div></a><div>{sentence(dice, 9)}</div></div>"
        for n in range(5)
    )
    return f"<body><div class=s1><div class=s2><span>By {sentence(dice, 2)}</span></div>{said}</div><div>{other}</div>"


def docs(said: str, dice: Random) -> str:
    return (
        f"<body><div role=main><section><h1>A title</h1><section>{said}</section></section></div><div>{sentence(dice)}"
    )


@pytest.mark.parametrize("template", [blog, tables, cards, docs])
@pytest.mark.parametrize("wrap", ["<div>{}</div>", "<article>{}</article>", "<main><div>{}</div></main>"])
def test_it_is_the_same_in_each_template(template: Template, wrap: str) -> None:
    for number in range(10):
        lines = paragraphs(Random(number))
        said = wrap.format("".join(f"<p>{line}</p>" for line in lines))
        assert article_of(template(said, Random(number + 99))) == "\n".join(lines)


def test_a_thread_is_all_of_its_posts() -> None:
    dice = Random(1)
    posts = [sentence(dice, 4 + 9 * (number % 4)) for number in range(12)]
    shown = "".join(
        f"<div class=post id=p{number}><div class=body>{post}</div></div>" for number, post in enumerate(posts)
    )
    found = article_of(
        f"<body><div class=menu>{sentence(dice)}</div><div class=thread>{shown}</div><p>{sentence(dice)}"
    )
    assert found == "\n".join(posts)


@pytest.mark.parametrize("template", [blog, tables, cards, docs])
@pytest.mark.parametrize("count", [1, 3])
def test_preformatted_lines_are_paragraphs(template: Template, count: int) -> None:
    """Wherever they are broken; and without a blank line, as in code, also however they are indented."""
    dice, indented = Random(2), ["\n  ", "\n\t\t"]
    words = [sentence(dice, 40) for _ in range(count)]
    for _ in range(10):
        ends = [" ", " ", "\n", " \n", "<br>", "<div></div>", *(indented if count == 1 else [])]
        broken = "\n\n".join(
            "".join(word + dice.choice(ends) for word in part.split()[:-1]) + part.split()[-1] for part in words
        )
        assert article_of(template(f"<div><pre>{broken}</pre></div>", dice)) == "\n".join(words)


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["div", "article", "pre", "p", "td", "form", "h2", "a href=/x", "/pre", "/div"]), max_size=9
    )
)
def test_whatever_is_in_preformatted_text_its_words_are_of_the_article(tags: list[str]) -> None:
    opened = "".join(f"<{tag}>" for tag in tags)
    found = main_text(page(f"<body><pre>{opened}one two three"), parts=True)
    assert "one two three" in found.parts.article or "h2" in tags or "a href=/x" in tags


@pytest.mark.parametrize("deep", [1, 40])
def test_preformatted_text_is_read_once_however_deep_it_is_nested(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read at each depth, 200 KB in 800 elements took three seconds."""
    read, flattened = [], article._flattened
    monkeypatch.setattr(article, "_flattened", lambda pre: read.append(flattened(pre)) or read[-1])
    tree = article.HTMLTree.parse("<body>" + "<div><pre>a <b>b</b>\n" * deep + "the text")
    article.mark_parts(tree)
    assert len(read) == 1 and read[0].split() == ["a", "b"] * deep + ["the", "text"]
    assert "the text" in (tree.body.text if tree.body else "")


def test_lines_that_are_cut_are_of_other_pages() -> None:
    said = paragraphs(Random(3), 4)
    for cut in ("…", "..."):
        shown = [*said[:2], f"And then they all went {cut}".replace(" …", "…"), *said[2:]]
        assert article_of(f"<body><div>{''.join(f'<p>{line}</p>' for line in shown)}</div>") == "\n".join(said)


@pytest.mark.parametrize("template", [blog, tables, cards, docs])
@pytest.mark.parametrize("wrap", ["<p>{}</p>", "<pre>{}</pre>"])
@pytest.mark.parametrize("end", ["...", " …"])
def test_a_text_longer_than_teasers_is_whole_though_it_ends_with_an_ellipsis(
    template: Template, wrap: str, end: str
) -> None:
    dice = Random(3)
    said = " ".join(sentence(dice) for _ in range(20)).rstrip(".") + end
    assert len(said) > MOST_CUT_CHARS
    assert article_of(template(f"<div>{wrap.format(said)}</div>", dice)) == said


def test_a_page_of_headings_that_lead_elsewhere_keeps_them() -> None:
    """It has no article, so its text is compared."""
    dice = Random(4)
    shown = "".join(
        f"<div><h2><a href=/{n}>{sentence(dice, 6)}</a></h2><p>{sentence(dice)}</p></div>" for n in range(20)
    )
    found = main_text(page(f"<body><div>{shown}</div>"), parts=True)
    assert found.parts == TextParts(found.text) and found.text.count("\n") > LEAST_CARDS


@pytest.mark.parametrize("html", ["", "<body>", "<body><p>", "<frameset>", "<body><script>a b c</script>", "<svg><p>a"])
def test_a_page_without_words_has_none(html: str) -> None:
    found = main_text(page(html), parts=True)
    assert found.parts == TextParts(found.text)


def test_of_a_page_of_more_nodes_than_are_read_the_first_count() -> None:
    said = "<div><p>" + "these are words of the article. " * 40 + "</p></div>"
    found = article_of(f"<body>{said}{'<div>a</div>' * MOST_NODES}")
    assert "words of the article" in found


def test_what_is_repeated_beside_it_is_told_apart() -> None:
    dice = Random(5)
    said, bio = paragraphs(dice, 4), sentence(dice)
    beside = [sentence(dice) for _ in range(LEAST_CARDS)]
    shown = "".join(f"<div class='reply r{number}'><p>{one}</p></div>" for number, one in enumerate(beside))
    html = f"<body><div class=text>{''.join(f'<p>{line}</p>' for line in said)}</div><div>{bio}</div><div>{shown}</div>"
    assert main_text(page(html), parts=True).parts == TextParts("\n".join(said), bio, "\n".join(beside))


@settings(deadline=None)
@given(st.text(st.sampled_from("ab\n\x02\x03\x04\x05"), max_size=40))
def test_nothing_is_lost_by_parting(text: str) -> None:
    """Signs that a page brings itself are of no use to it, and do no harm."""
    parts = parted(text)
    assert not parts.visitors and sorted("".join(parts).replace("\n", "")) == sorted(c for c in text if c in "ab")
