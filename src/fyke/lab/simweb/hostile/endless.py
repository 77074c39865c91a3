"""Sites that never end, beside sites that do: what a crawler must tell apart.

Kinds of traps, each a site of a few real pages and of endlessly many that show nothing more, or what was made up for
whoever asked; and kinds of honest sites, some of which look like traps: numbered archives, galleries of short
captions, lists of lists, suggestions in place of what is not there. Every page is a pure function of its address
(`answer`), seeded by its host, and says which real page it is.

Nothing of the crawler is imported. `servers` plays them as hosts of the names in `KINDS`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

REAL = 40  # real pages of a trap's host, beside the first one
HONEST_PAGES = 100  # of an honest host, beside the first one
DEEP_PAGES = 600  # of an honest host of a kind of its own
_FIRST_HALF = "January February March April May June"
MONTHS = f"{_FIRST_HALF} July August September October November December".split()
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "os", "un")]


class Made(NamedTuple):
    """A page: its title, its text (a block a string), its links; `real` names the page it is, empty for none."""

    title: str
    text: list[str]
    links: list[str]
    real: str = ""


_NOTHING = Made("Nothing", ["There is no such page."], ["/"])


def kind_of(host: str) -> str:
    """The kind of site that a host is; empty for none of these."""
    kind = re.sub(r"-\d+$", "", host.split(".")[-2]) if "." in host else ""
    return kind if kind in KINDS else ""


def answer(host: str, target: str) -> Made:
    """What the host, of a kind in `KINDS`, answers to a request."""
    path, _, query = target.partition("?")
    return KINDS[kind_of(host)](host, path, dict(parse_qsl(query)))


def html(made: Made, host: str) -> str:
    """The page as it is sent, within what all pages of its host have around them."""
    name = host.partition(".")[0]
    items = "".join(f"<li><a href='{link}'>{label(link)}</a></li>" for link in made.links)
    around = "".join(f"<p>{line}</p>" for line in _around(".".join(host.split(".")[-2:])))
    text = "".join(f"<p>{block}</p>" for block in made.text)
    return (
        f"<!doctype html><html><head><title>{made.title} - {name}</title><style>p {{ margin: 1em }}</style></head>"
        f"<body><nav><a href='/'>Home</a></nav><h1>{made.title}</h1>{text}<ul>{items}</ul><footer>{around}</footer>"
        f"<script>var now = {_number(host, made.title)};</script></body></html>"
    )


def label(link: str) -> str:
    """What a link is called: its last word, if it has one."""
    return " ".join(re.findall(r"[a-z]+", link.partition("?")[0].lower())[-1:]) or "more"


def real_pages(kind: str) -> int:
    """How many real pages a host of this kind has."""
    pages = {"honest": HONEST_PAGES, "suggesting": HONEST_PAGES, "hosts": 0, **dict.fromkeys(DEEP, DEEP_PAGES)}
    return 1 + pages.get(kind, REAL)


# --- text


def sentence(host: str, path: str) -> str:
    """What a page says that no other does."""
    return _words(Random(_number(host, path)), 12).capitalize() + "."


def _number(*parts: object) -> int:
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=6).digest(), "big")


def _words(random: Random, count: int) -> str:
    """Words as languages have them: few are frequent, most are rare."""
    return " ".join(_word(int(20_000 ** random.random())) for _ in range(count))


@lru_cache(30_000)
def _word(rank: int) -> str:
    random = Random(rank)
    return "".join(random.choice(_SYLLABLES) for _ in range(1 + (rank > 50) + (rank > 2000)))


@lru_cache(1000)
def _around(host: str) -> list[str]:
    random = Random(_number(host))
    return [_words(random, random.randint(5, 40)).capitalize() + "." for _ in range(random.randint(2, 8))]


def _real(host: str, name: str, links: list[str], words: int = 0) -> Made:
    random = Random(_number(host, name))
    texts = [_words(random, random.randint(15, 60)).capitalize() + "." for _ in range(random.randint(1, 4))]
    if words:
        texts = [_words(random, words).capitalize() + "."]
    return Made(_words(random, 3).title(), texts, links, f"{host} {name}")


def _articles(host: str, path: str, *, first: list[str]) -> Made | None:
    """The real part of a trap's host: its first page, which leads into the trap by `first`, and articles."""
    if path == "/":
        return _real(host, "first", [*first, *(f"/articles/{number}" for number in range(1, REAL // 2 + 1))])
    found = re.fullmatch(r"/articles/(\d+)", path)
    if not found or not 0 < int(found[1]) <= REAL:
        return None
    number = int(found[1])
    onward = [f"/articles/{number + REAL // 2}"] if number <= REAL // 2 else []
    return _real(host, f"article {number}", [*onward, *first])


# --- honest sites


def _honest(host: str, path: str, query: Mapping[str, str]) -> Made:
    kinds = [_flat, _archive, _shop, _gallery, _reference]
    return kinds[int((re.findall(r"\d+", host) or ["0"])[0]) % len(kinds)](host, path, query)


def _flat(host: str, path: str, query: Mapping[str, str]) -> Made:
    return _real(host, path, [f"/stories/{n}.html" for n in range(1, HONEST_PAGES + 1)] if path == "/" else [])


def _archive(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Numbered pages, each linking to the next."""
    number = int((re.findall(r"\d+$", path) or ["0"])[0])
    onward = [f"/{2019 + n % 4}/{1 + n % 12:02}/{n:05}" for n in (number + 1, number + 2) if n <= HONEST_PAGES]
    return _real(host, path, onward, words=30)


def _shop(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Lists of products, which say little, and products that say little more."""
    if path.startswith("/product/"):
        return _real(host, path, [], words=12)
    if path == "/":
        return _real(host, path, ["/list?page=0"])
    page = int(query["page"])
    onward = [f"/list?page={page + 1}"] if page < 9 else []
    products = [f"/product/{page * 9 + n}" for n in range(1, 10)]
    return Made(f"Products, page {page}", ["Prices include taxes."], [*products, *onward], f"{host} list {page}")


def _gallery(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Albums without a word, and captions."""
    if path.startswith("/photo/"):
        return _real(host, path, [], words=10)
    album = int((re.findall(r"\d+$", path) or ["-1"])[0])
    if album < 0:
        return _real(host, "/", [f"/album/{n}" for n in range(20)])
    return Made(f"Album {album}", [], [f"/photo/{album * 4 + n}" for n in range(4)], f"{host} album {album}")


def _reference(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A tree of four levels, whose pages are short."""
    depth = path.rstrip("/").count("/")
    onward = [f"{path}part{n}/" for n in range(4)] if depth < 3 else []
    if depth == 3 and path.endswith("part0/"):
        onward = [f"{path}name.html"]
    return _real(host, path, onward, words=15)


def _forum(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A discussion without end of its own: each page quotes two earlier posts in full and adds a short one."""
    number = int(query.get("start", "-1"))
    if number < 0:
        return _real(host, "first", ["/viewtopic?start=0"])
    posts = [sentence(host, f"post {n}") for n in (max(0, number - 9), max(0, number - 1), number)]
    onward = [f"/viewtopic?start={n}" for n in (number + 1, number + 2) if n < DEEP_PAGES]
    return Made("Re: A question", [f"Quote: {post}" for post in posts[:2]] + posts[2:], onward, f"{host} {number}")


def _results(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Tables of results: the same words on each, other numbers, and six names."""
    day = int((re.findall(r"\d+$", path) or ["0"])[0])
    onward = [f"/results/{n // 30}/{n}" for n in (day + 1, day + 7) if n <= DEEP_PAGES]
    if not day:
        return _real(host, "first", ["/results/0/1"])
    random = Random(_number(host, day))
    rows = [f"{place}. {_words(random, 2).title()} {random.randint(90, 200)} s" for place in range(1, 7)]
    head = ["Results of the day, in the order of arrival.", "Times are in seconds. All results are final."]
    return Made("Results", [*head, *rows], onward, f"{host} day {day}")


# --- traps


def _calendar(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A month leads to the next and the one before, and to its days."""
    real = _articles(host, path, first=["/calendar/2026/5"])
    if real:
        return real
    if not re.fullmatch(r"/calendar(/\d+){2,3}", path):
        return _NOTHING
    year, month, *days = [int(part) for part in re.findall(r"\d+", path)]
    name = f"{MONTHS[(month - 1) % 12]} {year}"
    around = [divmod(year * 12 + month - 1 + step, 12) for step in (-1, 1)]
    links = [f"/calendar/{one}/{two + 1}" for one, two in around]
    if days:
        return Made(f"{days[0]} {name}", ["There are no events on this day."], links)
    links += [f"/calendar/{year}/{month}/{number}" for number in range(1, 29)]
    return Made(name, ["Mo Tu We Th Fr Sa Su", "There are no events."], links)


def _repeated(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Links without a slash before them: each page is below every other one."""
    last = path.strip("/").split("/")[-1]
    names = [f"topic-{'abcdefgh'[n // 5]}{'vwxyz'[n % 5]}" for n in range(REAL)]
    made = _real(host, last or "first", [])
    near = names if not last else names[(names.index(last) if last in names else 0) % 36 :][:4]
    return made._replace(links=[f"{name}/" for name in near])


def _deeper(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A folder in each folder."""
    real = _articles(host, path, first=["/files/"])
    if real:
        return real
    random = Random(_number(host, path))
    return Made(f"Index of {path}", ["This folder has no files."], [f"{_words(random, 1)}/" for _ in range(3)])


def _longer(host: str, path: str, query: Mapping[str, str]) -> Made:
    """The way that led here is in the address."""
    real = _articles(host, path, first=["/way/start"])
    if real:
        return real
    random = Random(_number(host, path))
    return Made("Where next?", ["Choose where to go from here."], [f"{path}-{_words(random, 1)}" for _ in range(3)])


def _session_in_query(host: str, path: str, query: Mapping[str, str]) -> Made:
    real = _articles(host, path, first=["/articles/1", "/articles/2"])
    made = real or _NOTHING
    session = f"{_number(host, path, sorted(query.items())):012x}"
    return made._replace(links=[f"{link}?sid={session}" for link in made.links])


def _session_in_path(host: str, path: str, query: Mapping[str, str]) -> Made:
    inner = re.sub(r"^/s-[0-9a-f]+", "", path) or "/"
    real = _articles(host, inner, first=["/articles/1", "/articles/2"])
    made = real or _NOTHING
    return made._replace(links=[f"/s-{_number(host, path):012x}{link}" for link in made.links])


def _soft_404(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Whatever is asked for is there, and says that it is not."""
    random = Random(_number(host, path))
    made_up = [f"/{_words(random, 1)}/{_words(random, 1)}-{_words(random, 1)}" for _ in range(4)]
    real = _articles(host, path, first=made_up[:2])
    if real:
        return real
    name = path.rpartition("/")[2].replace("-", " ")
    return Made("Not found", [f"We have no page about {name}.", "Perhaps you look for one of these:"], made_up)


def _hosts(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A name for every word, and each says the same."""
    label, _, domain = host.partition(".")
    if "." not in domain:
        return _real(host, "first", [f"http://{_words(Random(n), 2).replace(' ', '')}.{host}%PORT%/" for n in range(8)])
    random = Random(_number(host, path))
    links = [f"http://{_words(random, 2).replace(' ', '')}.{domain}%PORT%/" for _ in range(6)]
    return Made(f"Welcome to {label}", ["All that you need to know of it, and the best offers, is here."], links)


def _facets(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A list in every order, with every filter."""
    item = re.fullmatch(r"/item/(\d+)", path)
    if item or path == "/":
        return _real(host, path, [] if item else ["/list"])
    choices = {
        "color": "red green blue",
        "size": "s m l",
        "sort": "price name date",
        "view": "grid table",
        "per": "5 9",
    }
    items = [f"/item/{n}" for n in range(1, REAL) if not query or _number(n, sorted(query.items())) % 3]
    Random(_number(sorted(query.items()))).shuffle(items)
    more = [
        "/list?" + urlencode({**query, name: value})
        for name, values in choices.items()
        for value in values.split()
        if query.get(name) != value
    ]
    return Made("All items", ["Choose what you want to see."], [*items, *more], "" if query else f"{host} list")


def _past_the_end(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A list that has a next page also after its last one."""
    if path != "/list":
        return _real(host, path, ["/list?page=1"] if path == "/" else [])
    page = int(query.get("page", "1"))
    onward = [f"/list?page={page + 1}", f"/list?page={page + 2}"]
    if page > REAL // 5:
        return Made("Entries", ["There are no more entries."], onward)
    entries = [f"/entry/{page * 4 + n}" for n in range(4)]
    return Made("Entries", ["Some of the entries that we have."], [*entries, *onward], f"{host} page {page}")


def _search(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A search for any words finds some pages, shows a piece of each, and proposes other words."""
    real = _articles(host, path, first=["/search?q=first"])
    if real:
        return real
    random = Random(_number(host, query.get("q", "")))
    found = [random.randint(1, REAL) for _ in range(5)]
    texts = [" ".join(_real(host, f"article {number}", []).text).split() for number in found]
    starts = [random.randrange(max(1, len(text) - 12)) for text in texts]
    pieces = [" ".join(text[start : start + 12]) for text, start in zip(texts, starts, strict=True)]
    further = [f"/search?{urlencode({'q': f'{random.choice(text)} {random.choice(text)}'})}" for text in texts[:3]]
    return Made("Search", ["Pages that were found:", *pieces], [*(f"/articles/{n}" for n in found), *further])


def _history(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Every page has revisions without end, and each can be held against each."""
    real = _articles(host, path, first=["/history?page=1&offset=0"])
    if real:
        return real._replace(links=[*real.links, f"/history?page={path.rpartition('/')[2] or 1}&offset=0"])
    page, offset = int(query.get("page", "1")) % (REAL + 1) or 1, int(query.get("offset", "0"))
    random = Random(_number(host, page, offset))
    other = [f"/history?page={page}&offset={offset + n}&diff={random.randint(1, 10**6)}" for n in (1, 2)]
    other.append(f"/history?page={page}&offset={offset + 50}")
    if "diff" not in query:
        rows = [f"{n}. {_words(random, 1).title()}, {random.randint(1, 28)} {random.choice(MONTHS)}" for n in range(9)]
        return Made("Revisions", ["Choose two revisions to compare them.", *rows], other)
    text = _real(host, f"article {page}", []).text
    return Made("Difference", [f"Revision {query['diff']}", *text[random.randint(0, 1) :]], other)


def _made_up(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Whatever is asked for is there, and says something new."""
    random = Random(_number(host, path))
    folders = ["/".join(_words(random, random.randint(1, 3)).split()) for _ in range(4)]
    links = [f"/{folder}/{_words(random, 1)}" for folder in folders]
    return _articles(host, path, first=links[:2]) or _invented(host, path, links)


def _made_up_numbers(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A page for every number, and each says something new."""
    random = Random(_number(host, path, sorted(query.items())))
    links = [f"/entry?id={random.randint(1, 10**6)}" for _ in range(5)]
    return _articles(host, path, first=links[:2]) or _invented(host, query.get("id", path), links)


def _invented(host: str, name: str, links: list[str]) -> Made:
    return _real(host, f"invented {name}", links)._replace(real="")


def _suggesting(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Honest: who asks for what is not there is told so, kindly, and shown how some other articles begin."""
    found = re.fullmatch(r"/topics/([a-z]+)", path)
    names = [_word(2001 + _number(host, number) % 15_000) for number in range(HONEST_PAGES)]
    if path == "/":
        return _real(host, path, [f"/topics/{name}" for name in names[:10]])
    if found and found[1] in names:
        at = names.index(found[1])
        return _real(host, path, [f"/topics/{names[(at * k + k) % HONEST_PAGES]}" for k in range(1, 11)])
    shown = Random(_number(host, path)).sample(names, 4)
    teasers = [_real(host, f"/topics/{name}", []).text[0] for name in shown]
    return Made("Nothing here", ["We could not find what you asked for.", *teasers], [f"/topics/{n}" for n in shown])


KINDS: Mapping[str, Callable[[str, str, Mapping[str, str]], Made]] = {
    "honest": _honest, "calendar": _calendar, "repeated": _repeated, "deeper": _deeper, "longer": _longer,
    "session-in-query": _session_in_query, "session-in-path": _session_in_path, "soft-404": _soft_404,
    "hosts": _hosts, "facets": _facets, "past-the-end": _past_the_end, "search": _search, "history": _history,
    "forum": _forum, "results": _results, "made-up": _made_up, "made-up-numbers": _made_up_numbers,
    "suggesting": _suggesting,
}  # fmt: skip
DEEP = ["forum", "results"]  # honest, with more pages
LATER = ["search", "history", "made-up", "made-up-numbers", "suggesting", *DEEP]  # when the guard had long been done
TRAPS = [kind for kind in KINDS if kind not in ("honest", *LATER)]
HELD_BACK = ["longer", "session-in-path", "soft-404"]  # not played until the guard was done


def hosts_of(kinds: Sequence[str], honest: int) -> Iterator[str]:
    """The hosts of a web: one of each kind of trap, and `honest` ones."""
    yield from (f"{kind}-0.hostile" for kind in kinds)
    yield from (f"honest-{number}.hostile" for number in range(honest))
