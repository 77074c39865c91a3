"""The laws of probes: who makes pages up is told by three answers, who does not is hardly asked, memory is bounded."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontier.shard import Shard
from fyke.core.batches import Kind, texts, url_batch
from fyke.core.messages import judged_batch
from fyke.core.shapes import shapes, skeleton
from fyke.core.urls import MAX_URL_BYTES, canonical, key_of, locate, split
from fyke.core.visits import visits_of
from fyke.fetcher.addresses import is_name
from fyke.frontier.traps.probes import (
    ASK_AFTER,
    ASK_HOSTS,
    GROWN,
    LEAST_LETTERS,
    PLACES,
    REST_PAGES,
    TRIES,
    host_made_up_like,
    made_up_like,
)
from fyke.frontier.traps.waiting import LET_THROUGH, Traps

HOST, DOMAIN = key_of("www.a.example"), key_of("a.example")
PARTS = st.lists(st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True), max_size=6)
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}=[a-z0-9]{0,9}", fullmatch=True), max_size=4)


Asking = Shard[Traps, None]  # traps, for their probes, on a directory of their own


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    asking = Asking(tmp_path, lambda store, state: Traps(store, 16, state, probes=True), None)
    yield asking
    asking.close()


def fresh_pages(asking: Asking, path: str, count: int) -> None:
    urls = [f"http://www.a.example{path}{number}" for number in range(count)]
    visits = visits_of(url_batch(list(map(locate, urls))))
    asking.stage.learn(judged_batch([(visit, True) for visit in visits]))
    asking.stage.probes.note_visited(np.full(count, HOST, np.uint64), np.full(count, DOMAIN, np.uint64))


def grow(asking: Asking, urls: int) -> None:
    asking.stage.probes.note_found(np.full(urls, HOST, np.uint64), np.full(urls, DOMAIN, np.uint64))


def answer(asking: Asking, wanted: list[tuple[str, int]], *, made_up: bool) -> None:
    urls, about = zip(*wanted, strict=True)
    visits = visits_of(url_batch(list(map(locate, urls)), via=about, kind=Kind.PROBE))
    asking.stage.learn(judged_batch([(visit, made_up) for visit in visits]))


def convict(asking: Asking, path: str) -> None:
    for _ in range(TRIES):
        (wanted,) = asking.stage.probes.take()
        assert wanted[0].startswith(f"http://www.a.example{path}")
        answer(asking, [wanted], made_up=True)


def passed(asking: Asking, path: str, host: str = "www.a.example") -> list[str]:
    urls = [f"http://{host}{path}{number}" for number in range(7000, 7100)]
    urls = [url for url in urls if key_of(url) % LET_THROUGH]
    return texts(asking.stage.divert(url_batch(list(map(locate, urls)))))


def test_new_text_under_three_made_up_names_convicts_a_place_and_two_places_their_host(asking: Asking) -> None:
    fresh_pages(asking, "/entry/", 1)
    grow(asking, 1000)
    fresh_pages(asking, "/entry/", ASK_AFTER)
    assert passed(asking, "/entry/")
    convict(asking, "/entry/")
    assert asking.stage.take_accused() == {HOST}
    assert asking.stage.probes.take() == []
    assert passed(asking, "/entry/") == []
    assert passed(asking, "/a/b/c/d/")
    assert passed(asking, "/entry/", "web.a.example"), "another host"
    told = asking.stage.explain(url_batch([locate("http://www.a.example/entry/9999")]))
    assert "makes pages up" in told
    asking.save()
    asking.restart()
    assert passed(asking, "/entry/") == []
    grow(asking, 1000)
    fresh_pages(asking, "/a/b/c/d/", ASK_AFTER // 2)
    convict(asking, "/a/b/c/d/")
    assert passed(asking, "/any/thing?else=") == []
    fresh_pages(asking, "/any/thing?else=", 100)
    assert asking.stage.probes.take() == [], "what is known is not asked"


def test_a_domain_that_has_a_host_for_every_name_is_convicted_and_its_proven_hosts_are_not(asking: Asking) -> None:
    fresh_pages(asking, "/entry/", ASK_AFTER)
    urls = [f"http://{'abcdefghij'[number]}.a.example:8080/" for number in range(ASK_HOSTS)]
    for url in urls:
        visits = visits_of(url_batch([locate(url)]))
        asking.stage.learn(judged_batch([(visit, True) for visit in visits]))
    wanted = asking.stage.probes.take()
    assert len({url for url, _ in wanted}) == len(wanted) == TRIES
    assert all(url.endswith(".a.example:8080/") and url not in urls for url, _ in wanted)
    answer(asking, wanted[1:], made_up=True)
    assert passed(asking, "/", "new.a.example")
    answer(asking, wanted[:1], made_up=True)
    assert asking.stage.take_accused() == {DOMAIN}
    asking.save()
    asking.restart()
    assert passed(asking, "/", "new.a.example") == []
    assert passed(asking, "/entry/"), "it had shown enough before"
    assert passed(asking, "/", "a.example"), "nobody made up the domain's own name"
    assert passed(asking, "/", "a.other.example")


def test_whoever_says_no_once_is_cleared_and_left_alone(asking: Asking) -> None:
    fresh_pages(asking, "/entry/", 1)
    grow(asking, 100_000)
    fresh_pages(asking, "/entry/", ASK_AFTER)
    answer(asking, asking.stage.probes.take(), made_up=True)
    answer(asking, asking.stage.probes.take(), made_up=False)
    grow(asking, 1000)
    fresh_pages(asking, "/entry/", 10 * REST_PAGES)
    assert asking.stage.probes.take() == []
    assert passed(asking, "/entry/")
    for place in range(20):
        grow(asking, 1000)
        fresh_pages(asking, "/in" + place * "/in" + "/", ASK_AFTER)
    assert 1 <= len(asking.stage.probes.take()) <= 10 + 20 * ASK_AFTER / REST_PAGES, "no answer, no more questions"


def test_a_site_that_ends_is_not_asked(asking: Asking) -> None:
    """One of a hundred pages that all link to each other, and an archive whose pages each lead to the next two."""
    fresh_pages(asking, "/page/", 1)
    grow(asking, GROWN)
    for number in range(100):
        fresh_pages(asking, f"/page/{number}", 1)
        grow(asking, 1)
    fresh_pages(asking, "/page/", 5000)
    assert asking.stage.probes.take() == []


def test_a_site_whose_front_page_leads_to_all_of_it_is_not_asked(asking: Asking) -> None:
    fresh_pages(asking, "/page/", 1)
    grow(asking, 10_000)
    for number in range(100):
        fresh_pages(asking, f"/page/{number}", 1)
    assert asking.stage.probes.take() == []


def test_a_chain_beside_copies_is_asked_and_alone_is_not(asking: Asking) -> None:
    """Each page leads to the next, and to two copies that wait as traps."""
    for number in range(2 * GROWN):
        fresh_pages(asking, f"/page/{number}", 1)
        grow(asking, 1)
    assert asking.stage.probes.take() == []
    for number in range(2 * GROWN, 4 * GROWN):
        fresh_pages(asking, f"/page/{number}", 1)
        grow(asking, 3)
        asking.stage.probes.note_put_aside(np.full(2, HOST, np.uint64), np.full(2, DOMAIN, np.uint64))
    assert not asking.stage.probes.grown(np.array([HOST], np.uint64), np.array([DOMAIN], np.uint64)).any()
    convict(asking, "/page/")


@pytest.mark.parametrize("after", [0, 16])
def test_where_nobody_wants_it_no_host_is_asked_or_convicted(asking: Asking, after: int) -> None:
    fresh_pages(asking, "/entry/", 1)
    grow(asking, 1000)
    fresh_pages(asking, "/entry/", ASK_AFTER)
    convict(asking, "/entry/")
    assert passed(asking, "/entry/") == []
    asking.save()

    asking.restart(lambda store, state: Traps(store, after, state))
    assert passed(asking, "/entry/")
    assert asking.stage.take_cleared().num_rows > 0, "what waited goes on"
    assert len(asking.stage) == 0
    fresh_pages(asking, "/other/", 1000)
    grow(asking, 10_000)
    fresh_pages(asking, "/other/", 1000)
    assert asking.stage.probes.take() == []


def test_memory_is_bounded_and_who_is_convicted_stays_so_however_many_come(asking: Asking) -> None:
    fresh_pages(asking, "/entry/", 1)
    grow(asking, 1000)
    fresh_pages(asking, "/entry/", ASK_AFTER)
    convict(asking, "/entry/")
    probes = asking.stage.probes
    like = shapes(skeleton("http://www.a.example/a/1"))
    for host in range(1, 2 * PLACES):
        probes.note_fresh("http://www.a.example/a/1", like, host * 2654435761 % 2**64, host)
    assert probes.take() == [], "none of them grew"
    assert probes.state()["places"] <= PLACES
    assert passed(asking, "/entry/") == []


def test_a_trial_that_is_not_over_begins_anew_after_a_restart(asking: Asking) -> None:
    """What its answers were held against is lost, and what is under way counts for nothing."""
    fresh_pages(asking, "/entry/", 1)
    grow(asking, 100_000)
    fresh_pages(asking, "/entry/", ASK_AFTER)
    for _ in range(TRIES - 1):
        wanted = asking.stage.probes.take()
        answer(asking, wanted, made_up=True)
    under_way = asking.stage.probes.take()
    asking.save()
    asking.restart()
    assert asking.stage.probes.take() == []
    answer(asking, under_way, made_up=True)
    assert asking.stage.take_accused() == set() and passed(asking, "/entry/")
    grow(asking, 1000)
    fresh_pages(asking, "/entry/", REST_PAGES)
    convict(asking, "/entry/")
    assert asking.stage.take_accused() == {HOST}


def test_urls_of_which_no_other_can_be_made_do_not_clear_their_place(asking: Asking) -> None:
    fresh_pages(asking, "/a", 1)
    grow(asking, 1000)
    fresh_pages(asking, f"/{'a' * 600}", 2 * ASK_AFTER)
    assert asking.stage.probes.take() == []
    grow(asking, 1000)
    fresh_pages(asking, "/a", ASK_AFTER)
    assert len(asking.stage.probes.take()) == 1


@given(PARTS, NAMES, st.integers(0, 2**128 - 1), st.booleans())
def test_a_made_up_name_is_a_canonical_url_in_the_same_folder(
    parts: list[str], names: list[str], number: int, folder: bool
) -> None:
    query = f"?{'&'.join(names)}" if names else ""
    url = locate(f"http://www.a.example/{'/'.join(parts)}{'/' if folder and parts else ''}{query}").url.decode()
    made_up = made_up_like(url, number)
    if not made_up:
        assert url == "http://www.a.example/"
        return
    assert locate(made_up).url.decode() == made_up != url
    assert split(made_up).target.count("/") == split(url).target.count("/")
    assert re.sub("=[^&]*", "", made_up.partition("?")[2]) == re.sub("=[^&]*", "", url.partition("?")[2])


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("wiki/River", r"wiki/[a-z]{8}"),
        ("plumber-in-Ashford/", r"plumber-in-[a-z]{8}/"),
        ("page12.html", r"page\d{12}.html"),
        ("2026/11/23", r"2026/11/\d{12}"),
        ("commit/0a1b2c3d4e", r"commit/[0-9a-f]{10}"),
        ("o/550e8400-e29b-11d4-a716-44665544000f", r"o/[0-9a-f]{8}-e29b-11d4-a716-[0-9a-f]{12}"),
        ("deadbeef", r"[a-z]{8}"),
        ("?q=rain&page=7", r"\?q=rain&page=\d{12}"),
        ("?q=heavy+rain", r"\?q=heavy\+[a-z]{8}"),
        ("caf%C3%A9", r"[a-z]{25}"),
    ],
)
def test_a_made_up_name_has_the_form_of_the_other(name: str, form: str) -> None:
    made_up = made_up_like(f"http://www.a.example/{name}", 2**127 + 987654321987654321)
    assert re.fullmatch(f"http://www.a.example/{form}", made_up), made_up
    assert made_up != f"http://www.a.example/{name}"


@pytest.mark.parametrize(
    ("url", "beside"),
    [
        ("http://www.a.example/x?y", r"[a-z]{8}\.a\.example"),
        ("https://w1.b.a.co.uk:444/", r"[a-z]{8}1\.b\.a\.co\.uk:444"),
        ("http://all-about-mountains-net.a.example/", r"all-about-[a-z]{9}-net\.a\.example"),
        ("http://24.a.example/", r"[a-z]{8}\.a\.example"),
        ("http://a.example/", ""),
        ("http://127.0.0.1:80/", ""),
        ("http://[::1]:8080/", ""),
        ("http://localhost/", ""),
    ],
)
def test_a_made_up_host_is_beside_the_other(url: str, beside: str) -> None:
    made_up = host_made_up_like(url, 2**127 + 9)
    if not beside:
        assert made_up == ""
        return
    assert locate(made_up).url.decode() == made_up != url
    assert re.fullmatch(f"https?://{beside}/", made_up), made_up
    assert locate(made_up).domain == locate(url).domain


LABELS = st.one_of(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True), st.just("1" * 61 + "ab"))


@given(st.lists(LABELS, min_size=1, max_size=4), st.sampled_from(["", ":8080"]), st.integers(0, 2**128 - 1))
def test_a_made_up_host_is_one_that_can_be_asked_for(labels: list[str], port: str, number: int) -> None:
    """However long the other is: who has a host for every name is found out by long names too."""
    url = canonical(f"http://{'.'.join(labels)}.a.example{port}/x")
    if url is None or not is_name(split(url).host):
        return
    made_up = split(host_made_up_like(url, number))
    assert is_name(made_up.host), made_up.host
    assert (made_up.port, locate(url).domain) == (split(url).port, key_of("a.example"))
    assert made_up.host.endswith(".a.example")
    assert sum(map(str.isalpha, made_up.host.removesuffix(".a.example"))) >= LEAST_LETTERS


@pytest.mark.parametrize("name", ["1-" * 240, "?a=" + "1-" * 240, "x/" + "1." * 230 + "html"])
def test_a_made_up_name_of_many_numbers_is_a_url(name: str) -> None:
    url = locate(f"http://www.a.example/{name}").url.decode()
    made_up = made_up_like(url, 2**127 + 12345)
    assert len(made_up) <= MAX_URL_BYTES and canonical(made_up) == made_up != url


@pytest.mark.parametrize("name", ["caf%C3%A9", "%20", "a%2Fb", "x" * 300, "~a;b=c", ".htaccess", "1.2.3.html"])
def test_odd_names_stay_urls(name: str) -> None:
    url = locate(f"http://www.a.example/wiki/{name}").url.decode()
    made_up = made_up_like(url, 2**127 + 12345)
    assert locate(made_up).url.decode() == made_up != url
    assert made_up.startswith("http://www.a.example/wiki/")
    assert made_up_like(f"http://www.a.example/{'a/' * 400}", 1) == "", "too long to say where it lies"
