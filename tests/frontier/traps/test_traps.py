"""The laws of the guard: what brings nothing waits, all else does not, nothing is lost, memory is bounded."""

import re
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_lowercase, digits
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from frontier.shard import Shard
from fyke.core.batches import Kind, concat, texts, u64, url_batch
from fyke.core.messages import judged_batch
from fyke.core.urls import key_of, locate
from fyke.core.visits import visits_of
from fyke.disk.store import Store
from fyke.frontier.traps.guard import PATIENCE
from fyke.frontier.traps.tally import FREE, TRIED
from fyke.frontier.traps.testimony import RECENT
from fyke.frontier.traps.tries import FOLDERS_TRIED
from fyke.frontier.traps.tries import TRIED as TRIED_QUERIES
from fyke.frontier.traps.waiting import (
    FEW_ACTIVE,
    LATELY,
    LET_THROUGH,
    LOOK_BYTES,
    LOOK_ROWS,
    MOST_OWED,
    Traps,
    look_bytes,
    portions,
)
from fyke.frontier.traps.yields import COUNT, MOST_SHAPES

AFTER = 8


Guard = Shard[Traps, None]  # traps on a directory of their own


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    guard = Guard(tmp_path, lambda store, state: Traps(store, AFTER, state, most=4096), None)
    yield guard
    guard.close()


def batch(urls: list[str], via: str = "", kind: Kind = Kind.PAGE) -> Any:
    return url_batch([locate(url) for url in urls], via=key_of(via) if via else 0, kind=kind)


def learn(guard: Guard, urls: list[str], fresh: bool | None, via: str = "") -> list[int]:
    judged = judged_batch([(visit, fresh) for visit in visits_of(batch(urls, via))])
    guard.stage.learn(judged)
    return sorted(guard.stage.take_accused())


def numbered(path: str, count: int, begin: int = 0) -> list[str]:
    """Pages of which none is let through as a probe."""
    urls = (f"http://www.a.example{path}{number}" for number in range(begin, begin + 100 * count))
    return [url for url in urls if key_of(url) % LET_THROUGH][:count]


def worded(folder: str, count: int, begin: int = 0) -> list[str]:
    """The same, of which no two are alike."""
    letters = str.maketrans("0123456789", "abcdefghij")
    urls = (f"http://www.a.example{folder}{number}".translate(letters) for number in range(begin, begin + 100 * count))
    return [url for url in urls if key_of(url) % LET_THROUGH][:count]


def not_tried(urls: list[str]) -> list[str]:
    """Those of `urls` that wait where they are traps."""
    return [url for url in urls if key_of(url) % LET_THROUGH]


def passed(guard: Guard, urls: list[str], via: str = "") -> int:
    return int(guard.stage.divert(batch(urls, via)).num_rows)


def test_what_brings_nothing_waits_and_what_is_not_like_it_does_not(guard: Guard) -> None:
    assert learn(guard, numbered("/day/", AFTER - 1), False) == []
    assert passed(guard, numbered("/day/", 5, 1000)) == 5, "too early to tell"
    day = numbered("/day/", 1, 500)
    assert learn(guard, day, False) == u64(batch(day), "host").tolist(), "its host and no other of the domain"
    assert passed(guard, numbered("/day/", 5, 1000)) == 0
    assert passed(guard, numbered("/page/", 5)) == 5, "another path"
    assert passed(guard, [url.replace("www", "web") for url in numbered("/day/", 5)]) == 5, "another host"
    seeds = batch(numbered("/day/", 5, 1000), kind=Kind.SEED)
    assert guard.stage.divert(seeds).num_rows == 5, "asked for by a person"
    assert "/day/#" in guard.stage.explain(batch(numbered("/day/", 1, 2000)))


@pytest.mark.parametrize(
    ("trap", "like", "unlike"),
    [
        ("/list?a={n}&sort=up", "/list?b={n}&sort=down", "/other/{n}?sort=down"),
        ("/w{w}/x/x/{n}", "/v{w}/y/z/y/", "/v{w}/y/z/"),
        ("/{w}/b/c/d/e/f/g/{w}.html", "/k/l/m/n/o/p/q/r/{w}.html", "/k/l/{w}.html"),
        ("/{w}-{w}", "/{w}", "/{w}/{w}/"),
    ],
)
def test_a_name_a_repeated_part_depth_and_made_up_words_are_shapes(
    guard: Guard, trap: str, like: str, unlike: str
) -> None:
    def urls(pattern: str, count: int) -> list[str]:
        random = Random(pattern)
        words = ("".join(random.choices("abcdefgh", k=12)) for _ in range(100 * count))
        made = (f"http://www.a.example{pattern.format(n=n, w=word)}" for n, word in enumerate(words))
        return [url for url in made if key_of(url) % LET_THROUGH][:count]

    read = "http://www.a.example/read"
    learn(guard, [read], True)
    learn(guard, urls("/fine/{w}", 1), True, via=read)
    learn(guard, urls(trap, 4 * AFTER), False)
    assert passed(guard, urls(like, 20)) == 0
    if "{w}-" not in trap:
        assert passed(guard, urls(unlike, 20), via=read) == 20, "met on a page that was fresh"


def test_hosts_without_end_are_a_shape_of_their_domain(guard: Guard) -> None:
    hosts = [f"http://{word}.a.example/" for word in ("".join(Random(n).choices("abcdefgh", k=9)) for n in range(99))]
    hosts = [url for url in hosts if key_of(url) % LET_THROUGH]
    assert key_of("a.example") not in learn(guard, hosts[: PATIENCE * AFTER - 1], False), "not as soon as others"
    assert key_of("a.example") in learn(guard, hosts[PATIENCE * AFTER - 1 : PATIENCE * AFTER + 1], False)
    assert passed(guard, hosts[AFTER + 1 :]) == 0
    assert passed(guard, ["http://www.b.example/"]) == 1


def test_a_list_without_words_is_none_when_it_leads_to_what_is_fresh(guard: Guard) -> None:
    albums = numbered("/album/", 4 * AFTER)
    for number, album in enumerate(albums):
        learn(guard, [album], False)
        learn(guard, numbered("/photo/", 2, 1000 * number), True, via=album)
    assert passed(guard, numbered("/album/", 20, 5000)) == 20


def test_a_list_that_led_to_much_counts_once(guard: Guard) -> None:
    lists, photos = numbered("/list?colour=", 2 * AFTER), numbered("/photo/", 2 * AFTER)
    for of_list, photo in zip(lists, photos, strict=True):
        learn(guard, [of_list], False)
        learn(guard, [photo], True, via=lists[0])
    assert passed(guard, numbered("/list?colour=", 5, 10_000)) == 0, "all lists but the first led to nothing"
    assert passed(guard, numbered("/photo/", 5, 10_000)) == 5


def test_what_is_fresh_after_all_goes_on_and_nothing_is_lost(guard: Guard) -> None:
    """Through a save and a restart: what was diverted waits, and comes back once its shape brings something."""
    learn(guard, numbered("/day/", 2 * AFTER), False)
    waiting = numbered("/day/", 300, 10_000)
    assert passed(guard, waiting) == 0
    guard.save()
    guard.restart()
    assert len(guard.stage) == 300
    assert guard.stage.take_cleared().num_rows == 0
    learn(guard, numbered("/day/", AFTER, 100_000), True)
    back = []
    while (urls := guard.stage.take_cleared()).num_rows:
        back.append(urls)
    assert Counter(texts(concat(back))) == Counter(waiting)
    assert len(guard.stage) == 0


def test_some_are_tried_again_as_far_as_what_was_read_pays_for_it(guard: Guard) -> None:
    """However many are found: each page of a trap leads to a hundred others."""
    read = 0
    for begin in range(0, 10 * TRIED, 2 * AFTER):
        learn(guard, numbered("/day/", 2 * AFTER, 1000 * begin), False)
        read += 2 * AFTER
        urls = batch([f"http://www.a.example/day/{10**9 + 1000 * begin + number}" for number in range(900)])
        tried = guard.stage.divert(urls)
        assert not (u64(tried, "key") % np.uint64(LET_THROUGH)).any()
        assert texts(guard.stage.divert(tried)) == texts(tried), "also at the second look"
    found = 900 * (read // (2 * AFTER))
    assert 5 <= found - len(guard.stage) <= 1 + FREE + read / TRIED


def test_what_is_beside_a_trap_is_tried_however_many_the_trap_has(guard: Guard) -> None:
    """A forum's prints were read before any of its threads, and there are more of them."""
    prints = [f"http://www.a.example/thread?t={n}&view=print" for n in range(2000)]
    threads = [f"http://www.a.example/thread?t={n}&f=7" for n in range(200)]
    learn(guard, prints[: 2 * AFTER], False)
    assert texts(guard.stage.divert(batch(prints)))
    assert texts(guard.stage.divert(batch(threads)))


def test_a_shape_that_wavers_costs_no_more_than_a_few_looks(guard: Guard) -> None:
    learn(guard, numbered("/other/", 2 * AFTER), False)
    learn(guard, numbered("/day/", 2 * AFTER), False)
    assert passed(guard, numbered("/other/", 500)) == 0
    looked = 0
    for number in range(50):
        learn(guard, numbered("/day/", 3, 1000 * number), True)
        learn(guard, numbered("/day/", 2 * AFTER, 1000 * number + 500), False)
        before = len(guard.stage)
        guard.stage.take_cleared()
        looked += before
    assert looked > 10_000, "each wavering has a reason to look at all of it"
    assert guard.stage.state()["looks"] == 0
    learn(guard, numbered("/other/", AFTER, 10_000), True)
    cleared = 0
    for url in numbered("/", len(guard.stage)):
        at = locate(url)
        guard.stage.note_visited(*(np.array([key], np.uint64) for key in (at.key, at.host, at.domain)))
        cleared += guard.stage.take_cleared().num_rows
    assert cleared == 500, "visits pay for the looks that find what is no trap any more"


@pytest.mark.parametrize(
    ("steps", "fresh", "waits"),
    [(1, True, False), (1, False, True), (2, True, False), (2, None, False), (6, None, True)],
    ids=["to pages", "to one page", "to pages by two steps", "to files", "without end"],
)
@pytest.mark.parametrize("host", ["www.a.example", "www.b.example"], ids=["here", "elsewhere"])
def test_a_redirect_is_worth_what_it_leads_to(
    guard: Guard, steps: int, fresh: bool | None, waits: bool, host: str
) -> None:
    home = "http://www.a.example/"
    learn(guard, [home], True)
    for first in numbered("/go/", 4 * AFTER):
        via, url = home, first
        for step in range(steps):
            learn(guard, [url], None, via=via)
            via, url = url, f"http://{host}/{'step' * (step + 1)}/{first.rpartition('/')[2]}"
        if fresh is not None:
            learn(guard, [url], fresh, via=via)
    assert (passed(guard, numbered("/go/", 5, 100_000), via=home) < 5) == waits


def test_a_redirect_to_what_waits_shows_nothing(guard: Guard) -> None:
    """Links by which to share each page lead to as many pages that ask to log in."""
    home = "http://www.a.example/"
    logins = numbered("/login/", 4 * AFTER)
    shares = numbered("/share/", 4 * AFTER)
    learn(guard, [home], True)
    learn(guard, logins[: 2 * AFTER], False, via=home)
    for share, login in zip(shares[: 2 * AFTER], logins[2 * AFTER :], strict=True):
        assert passed(guard, [share], via=home) == (share in shares[:AFTER])
        learn(guard, [share], None, via=home)
        assert passed(guard, [login], via=share) == 0
        assert passed(guard, [login], via=share) == 0, "and counts once"


def test_a_trap_in_one_folder_says_nothing_of_others(guard: Guard) -> None:
    fine, trap = worded("/recipes/", 3 * AFTER), worded("/tags/", 40 * AFTER)
    for number in range(3 * AFTER):
        learn(guard, [fine[number]], True)
        learn(guard, trap[12 * number : 12 * number + 12], False)
    assert passed(guard, worded("/tags/", 30, 100_000)) == 0
    assert passed(guard, worded("/recipes/", 30, 100_000)) == 30
    assert passed(guard, worded("/", 30, 100_000)) == 30


def test_what_waits_is_not_left_for_ever_where_a_host_makes_up_new_text(guard: Guard) -> None:
    """As much goes out as is visited of such hosts, once most visits are to them; while others have many, none does."""
    learn(guard, numbered("/day/", 2 * AFTER), False)
    waiting = numbered("/day/", 50, 10_000)
    assert passed(guard, waiting) == 0
    maze, honest = (batch([f"http://www.{name}.example/{n}" for n in range(4 * LATELY)]) for name in ("maze", "honest"))
    for host in (maze, honest):
        learn(guard, texts(host)[:1], True)
    guard.stage.probes.note_found(u64(maze, "host").repeat(9), u64(maze, "domain").repeat(9))

    def visited(urls: Any) -> Any:
        guard.stage.note_visited(u64(urls, "key"), u64(urls, "host"), u64(urls, "domain"))
        return guard.stage.take_share()

    others = [batch([f"http://www.honest{n}.example/{page}" for page in range(LATELY)]) for n in range(FEW_ACTIVE)]
    honest = concat([honest, *others])
    honest = honest.take(np.random.default_rng(1).permutation(honest.num_rows))
    assert not visited(honest).num_rows
    assert not visited(concat([maze, honest])).num_rows
    out = visited(maze)
    assert texts(out) == waiting, "those that waited longest"
    assert guard.stage.divert(out).num_rows == len(waiting)
    shares = [visited(concat([maze.slice(0, 8), honest.slice(0, 8)])).num_rows for _ in range(40)]
    assert passed(guard, numbered("/day/", 180, 100_000)) == 0 and not any(shares)
    visited(maze)
    shares = []
    while sum(shares) < 100:
        out = visited(concat([maze.slice(0, 8), out]))
        shares.append(out.num_rows)
    assert sum(shares) <= 8 * len(shares) + MOST_OWED, "what went out lets nothing go"
    assert not visited(honest).num_rows


def test_where_few_wait_most_visits_are_theirs(guard: Guard) -> None:
    """A site without end is all that goes on: what little of others was wrongly taken for a trap is not left behind."""
    waiting = 0
    for name in range(60):
        urls = [f"http://www.site{name}.example/day/{number}" for number in range(60)]
        learn(guard, urls[: 2 * AFTER], False)
        some = [url for url in urls[2 * AFTER :] if key_of(url) % LET_THROUGH][:4]
        assert passed(guard, some) == 0
        waiting += len(some)
    maze = batch([f"http://www.maze.example/{n}" for n in range(LATELY + waiting)])
    learn(guard, texts(maze)[:1], True)
    guard.stage.probes.note_found(u64(maze, "host").repeat(9), u64(maze, "domain").repeat(9))
    out, visits = 0, LATELY
    while out < waiting and visits < maze.num_rows:
        urls = maze.slice(0, LATELY) if not out else maze.slice(visits, 4)
        guard.stage.note_visited(*(u64(urls, name) for name in ("key", "host", "domain")))
        visits += urls.num_rows
        out += guard.stage.take_share().num_rows
    assert out == waiting and visits < LATELY + waiting / 2


@pytest.mark.parametrize("others", [1, FEW_ACTIVE + 1])
def test_what_waits_goes_on_beside_a_list_that_has_no_end(guard: Guard, others: int) -> None:
    """Each page of it is new and leads to the next, so that it never grows. Beside many domains nothing goes on."""
    learn(guard, numbered("/day/", 2 * AFTER), False)
    assert passed(guard, numbered("/day/", 50, 10_000)) == 0
    lists = concat([batch([f"http://www.list{n}.example/{page}" for page in range(6 * LATELY)]) for n in range(others)])
    learn(guard, texts(lists)[:1], True)
    turns = lists.take(np.arange(lists.num_rows).reshape(others, -1).T.ravel())
    for begin in range(0, turns.num_rows, LATELY):
        urls = turns.slice(begin, LATELY)
        guard.stage.note_visited(u64(urls, "key"), u64(urls, "host"), u64(urls, "domain"))
        guard.stage.take_share()
    assert len(guard.stage) == (0 if others <= FEW_ACTIVE else 50)


def test_what_goes_on_in_vain_goes_on_ever_less(guard: Guard) -> None:
    """One domain's goes behind another's, and both are a smaller share of the visits."""
    traps = {name: [f"http://www.{name}.example/day/{number}" for number in range(600)] for name in ("one", "two")}
    for urls in traps.values():
        learn(guard, urls[: 2 * AFTER], False)
        urls[:] = [url for url in urls[2 * AFTER :] if key_of(url) % LET_THROUGH][:60]
        assert passed(guard, urls) == 0
    maze = batch([f"http://www.maze.example/{n}" for n in range(1000 * LATELY)])
    learn(guard, texts(maze)[:1], True)
    guard.stage.probes.note_found(u64(maze, "host").repeat(9), u64(maze, "domain").repeat(9))
    shares: list[list[str]] = []
    for begin in range(0, 16 * LATELY, LATELY):
        urls = maze.slice(begin, LATELY)
        guard.stage.note_visited(u64(urls, "key"), u64(urls, "host"), u64(urls, "domain"))
        shares.append(texts(guard.stage.take_share()))
        learn(guard, shares[-1], False)
    first, later = (sum(map(len, some)) for some in (shares[:4], shares[4:8]))
    assert {url.split("/")[2] for some in shares[:4] for url in some} == {f"www.{name}.example" for name in traps}
    assert first > later and 0 < sum(map(len, shares[4:])) <= 12 * LATELY / 8


def test_a_site_in_two_languages_is_read_beside_copies_in_folders(guard: Guard) -> None:
    """Its pages have the same names in both; those for print and for telephones say nothing of the other language, nor
    does the other language of them, however much of it is read."""
    base = "http://www.a.example"
    names = [ascii_lowercase[n % 26] * (3 + n // 26) for n in range(120)]
    names = [name for name in names if key_of(f"{base}/fr/{name}") % LET_THROUGH][:60]
    learn(guard, [f"{base}/en/{name}" for name in names], True)
    learn(guard, [f"{base}/print/en/{name}" for name in names[: 4 * AFTER]], False)
    learn(guard, [f"{base}/fr/"], True)
    french = [f"{base}/fr/{name}" for name in names]
    first = texts(guard.stage.divert(batch(french[:20])))
    assert len(first) == 1, "one is tried"
    learn(guard, first, True)
    assert passed(guard, french[20:]) == 40
    printed = not_tried([f"{base}/print/en/{name}" for name in names[4 * AFTER :]])
    assert passed(guard, printed[:4]) == 0
    folders = not_tried([f"{base}/{name}/{other}" for name in names for other in names[:3]])
    assert passed(guard, folders) <= FOLDERS_TRIED
    learn(guard, french[20:], True)
    assert passed(guard, printed[4:]) == 0, "whatever was new in French"


def test_a_copy_with_another_session_says_nothing_of_pages_that_nobody_read(guard: Guard) -> None:
    base = "http://www.a.example/index.php"
    names = [ascii_lowercase[n % 26] * (3 + n // 26) for n in range(40)]
    learn(guard, [f"{base}?page={name}&sess={n:08x}a" for n, name in enumerate(names[:20])], True)
    copies = [f"{base}?page={names[n % 20]}&sess={n + 999:08x}a" for n in range(4 * AFTER)]
    learn(guard, copies, False)
    again = [f"{base}?page={name}&sess={n:08x}b" for n, name in enumerate(names[:20])]
    assert passed(guard, again) <= 20 // 4
    assert passed(guard, [f"{base}?page={name}&sess={n:08x}b" for n, name in enumerate(names[20:])]) == 20


def test_what_is_known_of_a_host_says_nothing_of_a_folder_that_brings_something(guard: Guard) -> None:
    """A site that shows what it likes for whatever is not there has news all the same."""
    base = "http://www.a.example"
    words = [f"{a}{b}{c}" for a in "bcdfg" for b in "aeiou" for c in ascii_lowercase]
    learn(guard, [f"{base}/news/{word}" for word in words[:AFTER]], True)
    learn(guard, [f"{base}/{word}/not-{word}" for word in words[: 8 * AFTER]], False)
    assert passed(guard, [f"{base}/{word}/nor-{word}" for word in words[9 * AFTER : 12 * AFTER]]) <= 3 * AFTER // 4
    assert passed(guard, [f"{base}/news/{word}" for word in words[AFTER : 3 * AFTER]]) == 2 * AFTER


def test_who_has_little_that_waits_goes_first(guard: Guard) -> None:
    """A site that was wrongly taken for a trap has some pages that wait. A trap has as many as were found."""
    honest = [f"http://www.honest.example/stop/{number}" for number in range(100)]
    learn(guard, numbered("/day/", 2 * AFTER), False)
    learn(guard, honest[: 2 * AFTER], False)
    assert passed(guard, numbered("/day/", 900, 10_000)) == 0
    few = [url for url in honest[2 * AFTER :] if key_of(url) % LET_THROUGH][:40]
    assert passed(guard, few) == 0
    guard.save()
    guard.restart()
    out: list[str] = []
    while len(out) < len(few):
        out += texts(guard.stage.release(5, each=0))
    assert set(out) == set(few)
    more = [url for url in honest[2 * AFTER :] if key_of(url) % LET_THROUGH][40:]
    assert passed(guard, more) == 0
    assert set(texts(guard.stage.release(1024))) == set(more), "alone, also when nothing else is left"
    while guard.stage.release(100).num_rows:
        pass
    assert len(guard.stage) == 0, "all of it in the end"


VARIED = {
    "its query": ("/page/{w}", "/page/{w}?from={n}"),
    "what looks made up in it": ("/page/{w}", "/page/{w};sid={n:08x}a"),
    "its folders": ("/{w}.html", "/f{n}/{w}.html"),
    "the order of its parts": ("/{w}/low/", "/low/{w}/"),
}


@pytest.mark.parametrize("what", VARIED)
def test_a_page_under_many_urls_is_read_once_and_what_is_new_is_read(guard: Guard, what: str) -> None:
    """All of its URLs look alike, those of new pages as well; only what was read tells them apart."""
    random = Random(what)
    words = ["".join(random.choices("ghijklmn", k=9)) for _ in range(40)]
    plain, varied = VARIED[what]
    made_up = "sid" in varied  # has no plain form

    def url(word: str, number: int) -> str:
        pattern = varied if number or made_up else plain
        return f"http://www.a.example{pattern.format(w=word, n=number)}"

    for number, word in enumerate(words[:20], 1):  # by turns, as such a site is read
        learn(guard, [url(word, 0)], True)
        learn(guard, [url(word, number)], False)
    others = [url(word, 7000 + n) for n, word in enumerate(words[:20])]
    others = [other for other in others if key_of(other) % LET_THROUGH]
    assert passed(guard, others) == 0
    assert what in guard.stage.explain(batch(others[:1]))
    new = [url(word, 9000 + n) for n, word in enumerate(words[20:])]
    assert passed(guard, new) == len(new), "no like of these was read"
    guard.save()
    guard.restart()
    assert passed(guard, others) <= TRIED_QUERIES, "how often it was tried is forgotten"
    assert passed(guard, others[TRIED_QUERIES:]) == 0


def test_a_site_that_names_its_pages_in_a_query_is_read_whatever_its_copies_are(guard: Guard) -> None:
    def titles(rest: str, begin: int, count: int) -> list[str]:
        urls = (f"http://www.a.example/index.php?title=w{n}{rest}" for n in range(begin, begin + 100 * count))
        return [url for url in urls if key_of(url) % LET_THROUGH][:count]

    learn(guard, titles("", 0, 3 * AFTER), True)
    learn(guard, titles("&print=yes", 0, 3 * AFTER), False)
    assert passed(guard, titles("", 5000, 20)) == 20
    assert passed(guard, titles("&print=yes", 5000, 20)) == 0
    assert passed(guard, [f"http://www.a.example/index.php?session={n}&title=w{n}" for n in range(20)]) < 5, "no other"


def test_the_page_without_a_query_is_none_of_its_variants_and_says_nothing_after_one(guard: Guard) -> None:
    """Links to each have a campaign in them, by which half of the pages come first."""
    articles = worded("/news/", 6 * AFTER)
    of_campaigns = [f"{url}?utm_source=box&utm_content={n}" for n, url in enumerate(articles)]
    learn(guard, articles[: 2 * AFTER], True)
    learn(guard, of_campaigns[: 2 * AFTER], False)
    assert passed(guard, not_tried(of_campaigns[: 2 * AFTER])) == 0
    learn(guard, of_campaigns[2 * AFTER : 4 * AFTER], True)
    learn(guard, articles[2 * AFTER : 4 * AFTER], False)
    assert passed(guard, articles[2 * AFTER :]) == 4 * AFTER


def test_variants_with_a_name_that_brought_something_are_no_traps_for_those_with_others(guard: Guard) -> None:
    """Second pages of lists, beside campaigns."""
    lists = worded("/list/", 80)
    learn(guard, lists, True)
    learn(guard, [f"{url}?utm_source=box" for url in lists[: 2 * AFTER]], False)

    def of_page(number: int, rest: str = "") -> tuple[int, int]:
        urls = not_tried([f"{url}?page={number}{rest}" for url in lists[AFTER:]])
        return passed(guard, urls), len(urls)

    assert of_page(2)[0] == TRIED_QUERIES, "not known yet"
    assert of_page(2)[0] == TRIED_QUERIES, "the same, at the second look"
    learn(guard, [f"{lists[0]}?page=2"], True)
    whole, count = of_page(3)
    assert whole == count
    whole, count = of_page(4, "&utm_source=box")
    assert whole == count, "not known without it"
    assert passed(guard, [f"{url}?page=5" for url in lists]) == len(lists)
    assert of_page(5, "&utm_source=box")[0] == 0
    learn(guard, [f"{url}?page=6" for url in lists[:3]], False)
    assert of_page(7)[0] == 0


def test_of_variants_that_are_met_together_one_goes_out(guard: Guard) -> None:
    """Also where they come one after the other, and the page that has no query goes first and last."""
    pages = worded("/doc/", 3 * AFTER)
    for page in pages[: 2 * AFTER]:
        learn(guard, [page], True)
        learn(guard, [f"{page}?lang=de"], False)
    new = [f"{pages[-1]}?lang={lang}" for lang in ("es", "fr", "it", "nl", "pl", "sv", "tr")]
    together = texts(guard.stage.divert(batch(new)))
    assert set(together[1:]) == {url for url in new[1:] if not key_of(url) % LET_THROUGH}, "one, and what is tried"
    assert passed(guard, together[:1]) == 1, "also at the second look"
    assert passed(guard, [pages[-1]]) == 1
    assert passed(guard, [pages[-2]]) == 1
    assert passed(guard, not_tried([f"{pages[-2]}?lang=da"])) == 0


def test_a_page_without_a_session_is_read_after_it_was_with_one(guard: Guard) -> None:
    """Whose links are below other folders."""
    products = worded("/p/", 4 * AFTER)
    sessions = [url.replace("/p/", f"/(S({n:08x}aa))/p/") for n, url in enumerate(products)]
    learn(guard, products[: 2 * AFTER], True)
    learn(guard, sessions[: 2 * AFTER], False)
    learn(guard, sessions[2 * AFTER : 3 * AFTER], True)
    assert passed(guard, not_tried(sessions[:AFTER])) == 0
    assert passed(guard, sessions[3 * AFTER :]) == AFTER
    assert passed(guard, products[2 * AFTER :]) == 2 * AFTER


def test_a_page_that_was_only_found_has_variants(guard: Guard) -> None:
    """Of pages that are all new, few are looked at; others are read later than their variants."""
    pages = worded("/news/", 8 * AFTER)
    prints = [f"{url}?print=1" for url in pages]
    assert passed(guard, pages[: 4 * AFTER]) == 4 * AFTER
    learn(guard, prints[:AFTER], True)
    learn(guard, prints[AFTER : 3 * AFTER], False)
    assert passed(guard, not_tried(prints[3 * AFTER : 4 * AFTER])) == 0
    assert passed(guard, prints[4 * AFTER :]) == 4 * AFTER, "nobody found these without it"


@pytest.mark.parametrize(
    "url",
    [
        "/record;jsessionid={:08X}AB.node1?id={}",
        "/record?sid={:08x}ab&id={}",
        "/record?id={1}&sid={0:08x}ab",
        "/(S({:08x}ab))/record?id={}",
    ],
)
def test_a_session_that_came_first_says_nothing_of_the_page_itself(guard: Guard, url: str) -> None:
    """A catalogue whose pages name their own place, and are met under a session."""

    def pages(begin: int, end: int) -> tuple[list[str], list[str]]:
        sessions = [f"http://www.a.example{url.format(7 * n, n)}" for n in range(begin, end)]
        return sessions, [f"http://www.a.example/record?id={n}" for n in range(begin, end)]

    sessions, plain = pages(0, 4 * AFTER)
    learn(guard, sessions, True)
    learn(guard, plain, False)
    assert passed(guard, pages(1000, 1040)[1]) == 40
    learn(guard, [session.replace("ab", "ac").replace("AB", "AC") for session in sessions], False)
    assert passed(guard, not_tried(sessions)) == 0
    assert passed(guard, pages(2000, 2040)[1]) == 40


SESSIONS = {
    "number": lambda chance: str(chance.randrange(10**7, 10**8)),
    "letters": lambda chance: "".join(chance.choices(ascii_lowercase, k=10)),
    "base 36": lambda chance: "".join(chance.choices(ascii_lowercase + digits, k=26)),
    "base 64": lambda chance: "".join(chance.choices(ascii_letters + digits + "-_", k=24)),
    "UUID": lambda chance: str(UUID(int=chance.getrandbits(128))),
}


@pytest.mark.parametrize("url", ["/view?id={}&sid={}", "/view?sid={1}&do=show&id={0}", "/{1}/view/{0}"])
@pytest.mark.parametrize("session", SESSIONS)
def test_a_site_whose_every_link_has_a_session_is_read_once(guard: Guard, session: str, url: str) -> None:
    """However the session looks, and wherever it stands beside the page's own name."""
    chance = Random(3)

    def link(place: str, number: int) -> str:
        return f"http://www.a.example{url.replace('view', place).format(number, SESSIONS[session](chance))}"

    def links(place: str, number: int) -> list[str]:
        lists = [link("list", n) for n in range(10)]
        return [*lists, *(link("view", n) for n in range(number, number + 10))] if place == "list" else lists

    met, fetched = set(), 0
    todo = links("list", 0)
    while todo and fetched < 1000:
        for visit in visits_of(guard.stage.divert(batch([todo.pop(0) for _ in todo[:8]]))):
            place, number = re.findall(r"view|list|(?<=[?&]id=)\d+|(?<=view/|list/)\d+", visit.url)
            guard.stage.learn(judged_batch([(visit, (place, number) not in met)]))
            met.add((place, number))
            fetched += 1
            todo += links(place, 10 * int(number))
    assert len(met) == 110
    assert fetched < 2 * len(met)


def test_a_name_that_brought_much_is_heard_though_the_latest_did_not(guard: Guard) -> None:
    """Second pages of threads, most of which were met elsewhere before."""

    def threads(begin: int, rest: str = "") -> list[str]:
        return not_tried([f"http://www.a.example/thread?f=2&t={n}{rest}" for n in range(begin, begin + 99)])

    learn(guard, threads(0)[:40], True)
    learn(guard, threads(0, "&start=20")[:20], True)
    learn(guard, threads(0, "&start=20")[20:60], False)
    learn(guard, threads(0, "&view=print")[:40], False)
    learn(guard, threads(100) + threads(200, "&start=20"), True)
    assert passed(guard, threads(100, "&view=print")) == 0
    assert passed(guard, threads(100, "&start=20")) == len(threads(100, "&start=20"))


def test_a_forum_that_shows_each_thread_under_two_names_is_read(guard: Guard) -> None:
    """Half of what each name brings was met under the other, in runs as chance has them."""
    chance = Random(7)
    for n in range(200):
        page = f"http://www.a.example/thread?f={n % 4}&t={n}"
        assert passed(guard, [page]) == 1, f"after {n} threads"
        learn(guard, [page], chance.random() < 0.45)


def test_a_forum_without_new_threads_waits(guard: Guard) -> None:
    pages = [f"http://www.a.example/thread?f={n % 4}&t={n}" for n in range(400)]
    for n, page in enumerate(pages[:200]):
        learn(guard, [page], n % 2 == 0)
    learn(guard, pages[200 : 200 + 4 * AFTER], False)
    assert passed(guard, not_tried(pages[300:])) == 0


def test_who_has_to_log_in_to_reply_says_nothing_of_reading(guard: Guard) -> None:
    """A word that is known answers for its name."""
    host = "http://www.a.example"
    learn(guard, [f"{host}/members?mode=show&user=9999"], True)
    for n in range(4 * AFTER):
        learn(guard, [f"{host}/forum?post={n}"], True)
        learn(guard, [f"{host}/forum?mode=reply&post={n}"], False)
    assert passed(guard, not_tried([f"{host}/forum?mode=reply&post={n}" for n in range(1000, 1100)])) == 0
    assert passed(guard, [f"{host}/members?mode=show&user={n}" for n in range(40)]) == 40


def test_sorted_lists_say_nothing_of_the_next_pages_of_one(guard: Guard) -> None:
    """How a path is asked with several names says nothing of such as bring something."""
    host = "http://www.a.example"
    learn(guard, [f"{host}/list?f={n}&start=10" for n in range(2)], True)
    for n in range(4 * AFTER):
        learn(guard, [f"{host}/list?f={n}"], True)
        learn(guard, [f"{host}/list?f={n}&sk={n}&sd={n}"], False)
    assert passed(guard, not_tried([f"{host}/list?f={n}&sk={n}&sd={n}" for n in range(1000, 1100)])) == 0
    assert passed(guard, [f"{host}/list?f={n}&start=20" for n in range(40)]) == 40


def test_what_a_word_in_a_query_brings_says_nothing_of_other_words(guard: Guard) -> None:
    """A wiki's pages are edited and printed by the same script."""

    def asked(word: str, begin: int) -> list[str]:
        return [f"http://www.a.example/index.php?action={word}&title=W{n}" for n in range(begin, begin + 30)]

    for n in range(3 * AFTER):
        learn(guard, asked("edit", 100 * n)[:1], True)
        learn(guard, asked("print", 100 * n)[:1], False)
    assert passed(guard, asked("edit", 5000)) == 30
    assert passed(guard, not_tried(asked("print", 5000))) == 0


def test_second_pages_of_threads_are_read_beside_sessions_in_the_same_query(guard: Guard) -> None:
    threads = numbered("/t/", 60)
    learn(guard, threads, True)
    learn(guard, [f"{url}?sid={n:06x}z" for n, url in enumerate(threads[: 2 * AFTER])], False)
    learn(guard, [f"http://www.a.example/board/{n}?page=2" for n in range(4)], False, via=threads[0])
    assert passed(guard, not_tried([f"{url}?sid=0" for url in threads])) == 0
    tried = texts(guard.stage.divert(batch(not_tried([f"{url}?page=2" for url in threads]))))
    assert len(tried) == TRIED_QUERIES
    learn(guard, tried, True)
    assert passed(guard, not_tried([f"{url}?page=3" for url in threads])) == len(
        not_tried([f"{url}?page=3" for url in threads])
    )


def test_lists_in_a_folder_say_little_of_what_it_is_in(guard: Guard) -> None:
    """Of a forum each tag has a list of its questions."""
    learn(guard, [f"http://www.a.example/questions/{n}/{'abcdefghij'[n]}" for n in range(4)], True)
    learn(guard, worded("/questions/tagged/", 4 * PATIENCE * AFTER), False)
    assert passed(guard, not_tried(worded("/questions/tagged/", 20, 5000))) == 0
    questions = [
        f"http://www.a.example/questions/{n}/{word}" for n in (50, 61) for word in ("why", "how", "who", "where")
    ]
    assert passed(guard, questions) == len(questions)


def test_a_site_that_was_misjudged_comes_back_by_what_is_tried(guard: Guard) -> None:
    """Its first pages were lists of what it has. That was little to judge by."""
    learn(guard, [f"http://www.a.example/index.php?title=Category:w{n}" for n in range(2 * AFTER)], False)
    articles = [f"http://www.a.example/index.php?title=w{n}" for n in range(200)]
    tried = texts(guard.stage.divert(batch(articles)))
    assert 0 < len(tried) <= 1 + FREE, "traps, but for those"
    learn(guard, tried, True)
    back = []
    while (urls := guard.stage.take_cleared()).num_rows:
        back += texts(urls)
    assert sorted(tried + back) == sorted(articles)


def test_hosts_under_hosts_without_end_are_alike(guard: Guard) -> None:
    def stacked(depth: int) -> str:
        return f"http://{'.'.join(['mm', 'amp'][n % 2] for n in range(depth))}.a.example/"

    learn(guard, [stacked(depth) for depth in range(4, 4 + PATIENCE * AFTER + 1)], False)
    assert passed(guard, [url for depth in range(60, 70) if key_of(url := stacked(depth)) % LET_THROUGH]) == 0
    assert passed(guard, ["http://www.a.example/"]) == 1


def test_variants_that_lead_to_what_is_new_are_read(guard: Guard) -> None:
    """The pages of a list: the same but for their number, without a word of their own."""
    learn(guard, ["http://www.a.example/list"], False)
    for number in range(4 * AFTER):
        of_list = f"http://www.a.example/list?page={number}"
        learn(guard, [of_list], False, via="http://www.a.example/list")
        learn(guard, numbered("/item/", 2, 1000 * number), True, via=of_list)
    assert passed(guard, [f"http://www.a.example/list?page={number}" for number in range(100, 120)]) == 20


def test_a_host_that_brought_something_is_none_of_those_without_end(guard: Guard) -> None:
    hosts = [f"http://{''.join(Random(n).choices('abcdefgh', k=9))}.a.example/" for n in range(99)]
    learn(guard, worded("/read/", 3 * AFTER), True)
    learn(guard, hosts, False)
    assert (
        passed(guard, [f"http://{''.join(Random(-n).choices('abcdefgh', k=9))}.a.example/" for n in range(1, 99)]) < 9
    )
    assert passed(guard, worded("/other/", 20)) == 20


def test_who_grows_by_traps_alone_does_not_grow(guard: Guard) -> None:
    """An honest site with a calendar is not held to make up its pages."""
    learn(guard, ["http://www.a.example/"], True)
    learn(guard, numbered("/day/", 2 * AFTER), False)
    days = batch(numbered("/day/", 500, 10_000))
    guard.stage.probes.note_found(u64(days, "host"), u64(days, "domain"))
    assert guard.stage.probes.grown(u64(days, "host"), u64(days, "domain")).all()
    assert guard.stage.divert(days).num_rows == 0
    assert not guard.stage.probes.grown(u64(days, "host"), u64(days, "domain")).any()


def test_memory_is_bounded_at_any_number_of_hosts_and_shapes(guard: Guard) -> None:
    random = Random(1)
    for number in range(40):
        hosts = [f"http://h{number}-{n}.a{n}.example/{random.randrange(10**9)}/{n}" for n in range(400)]
        learn(guard, hosts, random.random() < 0.5)
    state = guard.stage.state()
    assert state["shapes"] <= 4096
    assert state["recent"] <= RECENT


def test_what_is_released_goes_out(guard: Guard) -> None:
    learn(guard, numbered("/day/", 2 * AFTER), False)
    assert passed(guard, numbered("/day/", 50, 10_000)) == 0
    released = guard.stage.release(20)
    assert texts(released) == numbered("/day/", 20, 10_000)
    assert texts(guard.stage.divert(released)) == texts(released), "also at the second look"
    assert len(guard.stage) == 30


def test_without_a_guard_what_waited_goes_on(guard: Guard) -> None:
    learn(guard, numbered("/day/", 2 * AFTER), False)
    assert passed(guard, numbered("/day/", 50, 10_000)) == 0
    guard.save()
    guard.restart(lambda store, state: Traps(store, 0, state))
    assert passed(guard, numbered("/day/", 50, 20_000)) == 50
    assert guard.stage.take_cleared().num_rows == 50
    assert len(guard.stage) == 0


def test_links_and_pages_cost_the_same_however_many_shapes_are_known(tmp_path: Path) -> None:
    pages = numbered("/page/", 200)
    known = np.zeros(MOST_SHAPES - 10_000, COUNT)
    known["key"], known["barren"] = np.arange(1, len(known) + 1) << 20, True
    known["owner"] = np.where(np.arange(len(known)) % 2, known["key"], locate(pages[0]).host)
    store = Store(tmp_path)
    guard = Traps(store, AFTER, {"shapes_file": store.write_array("trap-shapes", known, ""), "shapes": len(known)})
    assert guard.barren == len(known)
    links, judged = batch(pages), judged_batch([(visit, True) for visit in visits_of(batch(pages[:16]))])
    guard.learn(judged)  # room for more is made now and then
    taken = []
    for work, given in ((guard.learn, judged), (guard.divert, links)):
        tracemalloc.start()
        work(given)
        taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    guard.close()
    assert max(taken) < 512 << 10, "a copy of what is known would be some megabytes"


@pytest.mark.parametrize("length", [1, 120, 400])
def test_the_guard_looks_at_few_urls_in_a_step(guard: Guard, length: int) -> None:
    """However many wait, and however long they are."""
    urls = numbered(f"/{'x' * length}/", 40 * LOOK_ROWS)
    most = LOOK_BYTES + LOOK_ROWS * (max(map(len, urls)) + 8)
    together = [*portions(batch(urls))]
    assert [url for portion in together for url in texts(portion)] == urls
    assert all(look_bytes(portion) <= most for portion in together)
    learn(guard, urls[: 4 * AFTER], fresh=False)
    waiting = len(urls) - sum(guard.stage.divert(portion).num_rows for portion in together)
    learn(guard, urls[4 * AFTER : 5 * AFTER], fresh=True)
    cleared = 0
    for _ in range(2 * len(together)):
        gone = guard.stage.take_cleared()
        assert look_bytes(gone) <= most
        cleared += gone.num_rows
    assert cleared == waiting > 0
