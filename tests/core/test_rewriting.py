"""Rewriting is idempotent, stays on its host and scheme unless a rule says so, and makes canonical URLs; what a person
wrote wrongly is one clear line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.errors import ConfigurationError
from fyke.core.own_marks import LEAST_LINKS, is_id, without_issued, without_marks
from fyke.core.rewrite_rules import Rule, Shape, load, render
from fyke.core.rewriting import Rewriter
from fyke.core.urls import canonical, split

HOSTS = ["a.test", "www.a.test", "b.test", "c.test", "[::1]", "127.0.0.1"]
words = st.sampled_from(
    ["", "a", "sid", "print", "index.html", "abcdefgh1", "s-12345678x", "..", "x;sid=1", ";sid=a;b", "%2e"]
)
keys = st.sampled_from(["sid", "a", "print", "", "q"])
urls = st.builds(
    lambda scheme, host, port, path, query: canonical(f"{scheme}://{host}{port}/{path}?{query}"),
    st.sampled_from(["http", "https", "ftp"]),
    st.sampled_from(HOSTS),
    st.sampled_from(["", ":8080"]),
    st.lists(words, max_size=5).map("/".join),
    st.lists(st.builds(lambda key, value: f"{key}={value}", keys, words) | words, max_size=5).map("&".join),
).filter(lambda url: url is not None)
hosts = st.sampled_from(HOSTS)
plain_rules = st.one_of(
    st.builds(Rule, shape=st.just(Shape.DROP_KEY), host=hosts, key=st.sampled_from(["sid", "print"]),
              value=st.sampled_from([None, "a", ""]), path=st.sampled_from(["", "a", "index.html", "a/index.html"])),
    st.builds(Rule, shape=st.just(Shape.SORT_KEYS), host=hosts),
    st.builds(Rule, shape=st.just(Shape.INDEX_PAGE), host=hosts, key=st.just("index.html")),
    st.builds(Rule, shape=st.just(Shape.DROP_PARAMETER), host=hosts, key=st.sampled_from(["sid", "b"])),
    st.builds(Rule, shape=st.just(Shape.DROP_SEGMENT), host=hosts, place=st.integers(0, 2),
              prefix=st.sampled_from(["", "s-"]), length=st.sampled_from([(8, 9), (9, 20)])),
    st.builds(Rule, shape=st.just(Shape.DROP_SEGMENT), host=hosts, place=st.integers(-3, 2),
              key=st.sampled_from(["a", "print", "index.html"]), view=st.booleans()),
)  # fmt: skip
moves = (
    st.tuples(st.integers(0, 5), st.integers(0, 5))
    .filter(lambda two: two[0] < two[1])
    .map(lambda two: Rule(shape=Shape.HOST, host=HOSTS[two[0]], to=HOSTS[two[1]]))
)
rules = st.lists(plain_rules | moves, max_size=8)


@given(urls, rules)
def test_rewriting_is_idempotent_and_canonical(url: str, some: list[Rule]) -> None:
    rewriter = Rewriter(some)
    made = rewriter.rewrite(url)
    assert rewriter.rewrite(made.url).url == made.url
    assert canonical(made.url) == made.url
    assert bool(made.rules) == (made.url != url)


@pytest.mark.parametrize(("path", "left"), [("x", "x"), ("", ""), ("a/a1b2c3d4/x", "a/a1b2c3d4/x")])
@pytest.mark.parametrize("others", [[], [Rule(shape=Shape.DROP_SEGMENT, host="h.example", place=5, length=(8, 8))]])
def test_many_session_ids_in_a_row_are_dropped(path: str, left: str, others: list[Rule]) -> None:
    rules = [Rule(shape=Shape.DROP_SEGMENT, host="h.example", place=0, length=(8, 8)), *others]
    for times in (1, 2, 200):
        assert (
            Rewriter(rules).rewrite(f"http://h.example/{'a1b2c3d4/' * times}{path}").url == f"http://h.example/{left}"
        )
    bare = "/".join(["a1b2c3d4"] * 200)
    assert Rewriter(rules).rewrite(f"http://h.example/{bare}").url == "http://h.example/a1b2c3d4"


@given(urls, rules)
def test_only_a_rule_of_hosts_changes_the_host(url: str, some: list[Rule]) -> None:
    made = Rewriter(some).rewrite(url)
    before, after = split(url), split(made.url)
    assert (before.scheme, before.port) == (after.scheme, after.port)
    moved = [rule for rule in made.rules if rule.shape is Shape.HOST]
    assert (before.host != after.host) == bool(moved)
    assert all(rule.host == after.host for rule in made.rules if rule.shape is not Shape.HOST)
    without = Rewriter(rule for rule in some if rule.shape is not Shape.HOST).rewrite(url)
    assert split(without.url).host == before.host


@given(urls, hosts, st.sampled_from(["a", "index.html", "a/index.html"]))
def test_a_rule_of_one_path_does_nothing_at_others(url: str, host: str, path: str) -> None:
    here, anywhere = (Rewriter([Rule(shape=Shape.DROP_KEY, host=host, key="sid", path=one)]) for one in (path, ""))
    is_there = url.split("/", 3)[3].partition("?")[0] == path
    assert here.rewrite(url).url == (anywhere.rewrite(url).url if is_there else url)


@given(urls, rules)
def test_what_a_query_may_select_stays_at_its_index_page(url: str, some: list[Rule]) -> None:
    made = Rewriter(some).rewrite(url)
    dropped = any(rule.shape is Shape.INDEX_PAGE for rule in made.rules)
    assert not (dropped and "?" in made.url)


@given(urls, rules)
def test_a_rule_not_in_use_does_nothing(url: str, some: list[Rule]) -> None:
    off = [rule.model_copy(update={"use": False}) for rule in some]
    assert Rewriter(off).rewrite(url) == (url, ())


@given(rules=rules)
def test_a_file_says_what_was_written(rules: list[Rule], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rules") / "rewrite.toml"
    path.write_text(render(rules))
    assert load(path) == rules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]]\nshape = 'drop-keys'\nhost = 'a.test'", "shape"),
        ("[[rule]]\nshape = 'drop-key'\nhost = 'a.test'", "key"),
        ("[[rule]]\nshape = 'drop-key'\nhost = 'A test'\nkey = 'k'", "host"),
        ("[[rule]]\nshape = 'drop-key'\nhost = 'a.test'\nkey = 'k'\ncolour = 1", "1 of 'a.test': colour"),
        ("[[rule]]\nshape = 'drop-segment'\nhost = 'a.test'\nlength = [1, 9]", "length"),
        ("[[rule]]\nshape = 'host'\nhost = 'a.test'\nto = 'a.test'", "another host"),
        ("[[rule]]\nshape = 'sort-keys'\nhost = 'a.test'\npath = 'a'", "path"),
        ("[[rule]]\nshape = 'drop-key'\nhost = 'a.test'\nkey = 'k'\npath = 'a?b'", "path"),
        ("[crawl]\n", "nothing else"),
        ("rule = 1", "[[rule]]"),
        ("nonsense", "TOML"),
    ],
)
def test_a_mistake_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rewrite.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert said in str(caught.value) and "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_hosts_in_a_circle_are_a_mistake() -> None:
    circle = [Rule(shape=Shape.HOST, host="a.test", to="b.test"), Rule(shape=Shape.HOST, host="b.test", to="a.test")]
    with pytest.raises(ConfigurationError, match="circle"):
        Rewriter(circle)


HREFS = st.lists(st.sampled_from([f"/{name}" for name in "abcdefgh"]), min_size=LEAST_LINKS, max_size=12, unique=True)
IDS = st.text("0123456789abcdef", min_size=8, max_size=32).filter(is_id)


@given(
    HREFS, IDS, st.sampled_from(["{0}?sid={1}", "{0}?x=1&sid={1}", "{0};sid={1}", "/s-{1}{0}", "{0}?sid={1}&amp;x=1"])
)
def test_a_session_in_most_links_of_a_page_does_not_count(links: list[str], token: str, form: str) -> None:
    plain = [form.format(link, "0" * 8 + "x").replace("0" * 8 + "x", "") for link in links]
    asked = [form.format(link, token) for link in links]
    other = [form.format(link, token[::-1] + "7") for link in links]
    assert without_issued(asked, len(asked)) == without_issued(other, len(other)) != asked
    assert without_issued(plain, len(plain)) == plain
    few = asked[: LEAST_LINKS - 1]
    assert without_issued(few, len(few)) == few, "of few links each counts"
    ids = [f"{link}?id={token}{number}" for number, link in enumerate(links)]
    assert without_issued(ids, len(ids)) == ids, "what differs from link to link is no session"


def test_a_page_is_compared_without_its_own_session() -> None:
    plain = b'<a href="/b">b</a> <a href="/c?x=1">c</a>'
    asked = b'<a href="/b?sid=abcdef123456">b</a> <a href="/c?x=1&amp;sid=abcdef123456">c</a>'
    of = "http://a.test/?sid=abcdef123456"
    assert plain in without_marks(asked, of)
    assert not without_marks(asked, "http://a.test/"), "the session of another page counts"
    assert not without_marks(asked + b'<img src="/i?sid=abcdef123456">', of), "what is shown counts"
