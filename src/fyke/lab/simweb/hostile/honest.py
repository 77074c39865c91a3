"""Honest sites: the text of their pages, and five kinds of them, some of which look like traps.

There are numbered archives, galleries of short captions, lists of lists, discussions that quote, tables of numbers,
and suggestions in place of missing pages. `endless` has the endless sites and the table of kinds.

Invariant: every page is a pure function of its address, seeded by its host, and says which real page it is.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import NamedTuple

HONEST_PAGES = 100  # of an honest host, besides the first page
DEEP_PAGES = 600  # of a `forum` or `results` host
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "os", "un")]


class Made(NamedTuple):
    """A page: title, text (a block a string), links. `real` names the real page that it is, empty if none."""

    title: str
    text: list[str]
    links: list[str]
    real: str = ""
    leads_to: str = ""  # set if it is a redirect


def sentence(host: str, path: str) -> str:
    """Return the sentence that only this page says."""
    return words(Random(number_of(host, path)), 12).capitalize() + "."


def number_of(*parts: object) -> int:
    """Return a number of 48 bits that `parts` decide."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=6).digest(), "big")


def words(random: Random, count: int) -> str:
    """Return words distributed as in languages: few are frequent, most are rare."""
    return " ".join(word(int(20_000 ** random.random())) for _ in range(count))


@lru_cache(30_000)
def word(rank: int) -> str:
    """Return the word of this rank by frequency."""
    random = Random(rank)
    return "".join(random.choice(_SYLLABLES) for _ in range(1 + (rank > 50) + (rank > 2000)))


@lru_cache(1000)
def around(host: str) -> list[str]:
    """Return the lines that all pages of a host share."""
    random = Random(number_of(host))
    return [words(random, random.randint(5, 40)).capitalize() + "." for _ in range(random.randint(2, 8))]


def real_page(host: str, name: str, links: list[str], *, length: int = 0) -> Made:
    """Return the real page `name` of `host`: some blocks of text, or one of `length` words."""
    random = Random(number_of(host, name))
    texts = [words(random, random.randint(15, 60)).capitalize() + "." for _ in range(random.randint(1, 4))]
    if length:
        texts = [words(random, length).capitalize() + "."]
    return Made(words(random, 3).title(), texts, links, f"{host} {name}")


# --- sites


def honest(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Return a page of one of five kinds of sites, by the number of the host."""
    kinds = [_flat, _archive, _shop, _gallery, _reference]
    return kinds[int((re.findall(r"\d+", host) or ["0"])[0]) % len(kinds)](host, path, query)


def moved(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Return a page or a redirect: all links lead to former places, which redirect to the present ones."""
    before = re.fullmatch(r"/archive/(\d+)", path)
    if before:
        return Made("Moved", [], [], f"{host} {path}", f"/stories/{before[1]}.html")
    return real_page(host, path, [f"/archive/{n}" for n in range(1, HONEST_PAGES + 1)] if path == "/" else [])


def _flat(host: str, path: str, query: Mapping[str, str]) -> Made:
    return real_page(host, path, [f"/stories/{n}.html" for n in range(1, HONEST_PAGES + 1)] if path == "/" else [])


def _archive(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Numbered pages, each linking to the next."""
    number = int((re.findall(r"\d+$", path) or ["0"])[0])
    onward = [f"/{2019 + n % 4}/{1 + n % 12:02}/{n:05}" for n in (number + 1, number + 2) if n <= HONEST_PAGES]
    return real_page(host, path, onward, length=30)


def _shop(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Lists of products, which say little, and products, which say little more."""
    if path.startswith("/product/"):
        return real_page(host, path, [], length=12)
    if path == "/":
        return real_page(host, path, ["/list?page=0"])
    page = int(query["page"])
    onward = [f"/list?page={page + 1}"] if page < 9 else []
    products = [f"/product/{page * 9 + n}" for n in range(1, 10)]
    return Made(f"Products, page {page}", ["Prices include taxes."], [*products, *onward], f"{host} list {page}")


def _gallery(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Albums without a word, and captions."""
    if path.startswith("/photo/"):
        return real_page(host, path, [], length=10)
    album = int((re.findall(r"\d+$", path) or ["-1"])[0])
    if album < 0:
        return real_page(host, "/", [f"/album/{n}" for n in range(20)])
    return Made(f"Album {album}", [], [f"/photo/{album * 4 + n}" for n in range(4)], f"{host} album {album}")


def _reference(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A tree of four levels with short pages."""
    depth = path.rstrip("/").count("/")
    onward = [f"{path}part{n}/" for n in range(4)] if depth < 3 else []
    if depth == 3 and path.endswith("part0/"):
        onward = [f"{path}name.html"]
    return real_page(host, path, onward, length=15)


def forum(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Return a page of a long discussion, which quotes two earlier posts in full and adds a short one."""
    number = int(query.get("start", "-1"))
    if number < 0:
        return real_page(host, "first", ["/viewtopic?start=0"])
    posts = [sentence(host, f"post {n}") for n in (max(0, number - 9), max(0, number - 1), number)]
    onward = [f"/viewtopic?start={n}" for n in (number + 1, number + 2) if n < DEEP_PAGES]
    return Made("Re: A question", [f"Quote: {post}" for post in posts[:2]] + posts[2:], onward, f"{host} {number}")


def results(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Return a table of results: each has the same words, other numbers, and six names."""
    day = int((re.findall(r"\d+$", path) or ["0"])[0])
    onward = [f"/results/{n // 30}/{n}" for n in (day + 1, day + 7) if n <= DEEP_PAGES]
    if not day:
        return real_page(host, "first", ["/results/0/1"])
    random = Random(number_of(host, day))
    rows = [f"{place}. {words(random, 2).title()} {random.randint(90, 200)} s" for place in range(1, 7)]
    head = ["Results of the day, in the order of arrival.", "Times are in seconds. All results are final."]
    return Made("Results", [*head, *rows], onward, f"{host} day {day}")


def suggesting(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Return an article, or a page that says that none is there and how some others begin."""
    found = re.fullmatch(r"/topics/([a-z]+)", path)
    names = [word(2001 + number_of(host, number) % 15_000) for number in range(HONEST_PAGES)]
    if path == "/":
        return real_page(host, path, [f"/topics/{name}" for name in names[:10]])
    if found and found[1] in names:
        at = names.index(found[1])
        return real_page(host, path, [f"/topics/{names[(at * k + k) % HONEST_PAGES]}" for k in range(1, 11)])
    shown = Random(number_of(host, path)).sample(names, 4)
    teasers = [real_page(host, f"/topics/{name}", []).text[0] for name in shown]
    return Made("Nothing here", ["We could not find what you asked for.", *teasers], [f"/topics/{n}" for n in shown])
