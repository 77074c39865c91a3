"""Sites that never end, beside sites that do: a crawler must tell them apart.

Each kind of trap is a site of a few real pages and endlessly many others, which show nothing new or were made up for
the request. The honest sites beside them are in `fyke.lab.simweb.hostile.honest`. `servers` plays them as hosts of
the names in `KINDS`.

Invariant: every page is a pure function of its address (`answer`), seeded by its host, and says which real page it
is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from urllib.parse import parse_qsl, urlencode

from fyke.lab.simweb.hostile.honest import (
    DEEP_PAGES,
    HONEST_PAGES,
    Made,
    around,
    forum,
    honest,
    moved,
    number_of,
    real_page,
    results,
    suggesting,
    words,
)

REAL = 40  # real pages of a trap's host, besides the first
_FIRST_HALF = "January February March April May June"
MONTHS = f"{_FIRST_HALF} July August September October November December".split()


_NOTHING = Made("Nothing", ["There is no such page."], ["/"])


def kind_of(host: str) -> str:
    """Return the kind of site of a host, or "" if it is none of `KINDS`."""
    kind = re.sub(r"-\d+$", "", host.split(".")[-2]) if "." in host else ""
    return kind if kind in KINDS else ""


def answer(host: str, target: str) -> Made:
    """Return the answer of `host`, of a kind in `KINDS`, to a request."""
    path, _, query = target.partition("?")
    return KINDS[kind_of(host)](host, path, dict(parse_qsl(query)))


def html(made: Made, host: str) -> str:
    """Return the page as sent, with the lines that all pages of its host share."""
    name = host.partition(".")[0]
    items = "".join(f"<li><a href='{link}'>{label(link)}</a></li>" for link in made.links)
    foot = "".join(f"<p>{line}</p>" for line in around(".".join(host.split(".")[-2:])))
    text = "".join(f"<p>{block}</p>" for block in made.text)
    return (
        f"<!doctype html><html><head><title>{made.title} - {name}</title><style>p {{ margin: 1em }}</style></head>"
        f"<body><nav><a href='/'>Home</a></nav><h1>{made.title}</h1>{text}<ul>{items}</ul><footer>{foot}</footer>"
        f"<script>var now = {number_of(host, made.title)};</script></body></html>"
    )


def label(link: str) -> str:
    """Return the words of a link: its last word, if it has one."""
    return " ".join(re.findall(r"[a-z]+", link.partition("?")[0].lower())[-1:]) or "more"


def real_pages(kind: str) -> int:
    """Return how many real pages a host of this kind has."""
    pages = {**dict.fromkeys(("honest", "suggesting"), HONEST_PAGES), **dict.fromkeys(DEEP, DEEP_PAGES)}
    pages |= {"moved": 2 * HONEST_PAGES, "hosts": 0}
    return 1 + pages.get(kind, REAL)


# --- traps


def _articles(host: str, path: str, *, first: list[str]) -> Made | None:
    """Return the real part of a trap's host: articles, and the first page, which leads into the trap by `first`."""
    if path == "/":
        return real_page(host, "first", [*first, *(f"/articles/{number}" for number in range(1, REAL // 2 + 1))])
    found = re.fullmatch(r"/articles/(\d+)", path)
    if not found or not 0 < int(found[1]) <= REAL:
        return None
    number = int(found[1])
    onward = [f"/articles/{number + REAL // 2}"] if number <= REAL // 2 else []
    return real_page(host, f"article {number}", [*onward, *first])


def _calendar(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A month that links to the next, to the previous, and to its days."""
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
    """Links without a leading slash: each page is below every other one."""
    last = path.strip("/").split("/")[-1]
    names = [f"topic-{'abcdefgh'[n // 5]}{'vwxyz'[n % 5]}" for n in range(REAL)]
    made = real_page(host, last or "first", [])
    near = names if not last else names[(names.index(last) if last in names else 0) % 36 :][:4]
    return made._replace(links=[f"{name}/" for name in near])


def _deeper(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A folder in each folder."""
    real = _articles(host, path, first=["/files/"])
    if real:
        return real
    random = Random(number_of(host, path))
    return Made(f"Index of {path}", ["This folder has no files."], [f"{words(random, 1)}/" for _ in range(3)])


def _longer(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Addresses that contain the way that led to them."""
    real = _articles(host, path, first=["/way/start"])
    if real:
        return real
    random = Random(number_of(host, path))
    return Made("Where next?", ["Choose where to go from here."], [f"{path}-{words(random, 1)}" for _ in range(3)])


def _session_in_query(host: str, path: str, query: Mapping[str, str]) -> Made:
    made = _articles(host, path, first=["/articles/1", "/articles/2"]) or _NOTHING
    session = f"{number_of(host, path, sorted(query.items())):012x}"
    return made._replace(links=[f"{link}?sid={session}" for link in made.links])


def _session_in_path(host: str, path: str, query: Mapping[str, str]) -> Made:
    inner = re.sub(r"^/s-[0-9a-f]+", "", path) or "/"
    made = _articles(host, inner, first=["/articles/1", "/articles/2"]) or _NOTHING
    return made._replace(links=[f"/s-{number_of(host, path):012x}{link}" for link in made.links])


def _soft_404(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A page for every request, which says that there is no such page."""
    random = Random(number_of(host, path))
    made_up = [f"/{words(random, 1)}/{words(random, 1)}-{words(random, 1)}" for _ in range(4)]
    real = _articles(host, path, first=made_up[:2])
    if real:
        return real
    name = path.rpartition("/")[2].replace("-", " ")
    return Made("Not found", [f"We have no page about {name}.", "Perhaps you look for one of these:"], made_up)


def _hosts(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A host for every word, all with the same text."""
    label, _, domain = host.partition(".")
    if "." not in domain:
        names = [words(Random(n), 2).replace(" ", "") for n in range(8)]
        return real_page(host, "first", [f"http://{name}.{host}%PORT%/" for name in names])
    random = Random(number_of(host, path))
    links = [f"http://{words(random, 2).replace(' ', '')}.{domain}%PORT%/" for _ in range(6)]
    return Made(f"Welcome to {label}", ["All that you need to know of it, and the best offers, is here."], links)


def _facets(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A list in every order, with every filter."""
    item = re.fullmatch(r"/item/(\d+)", path)
    if item or path == "/":
        return real_page(host, path, [] if item else ["/list"])
    choices = {
        "color": "red green blue",
        "size": "s m l",
        "sort": "price name date",
        "view": "grid table",
        "per": "5 9",
    }
    items = [f"/item/{n}" for n in range(1, REAL) if not query or number_of(n, sorted(query.items())) % 3]
    Random(number_of(sorted(query.items()))).shuffle(items)
    more = [
        "/list?" + urlencode({**query, name: value})
        for name, values in choices.items()
        for value in values.split()
        if query.get(name) != value
    ]
    return Made("All items", ["Choose what you want to see."], [*items, *more], "" if query else f"{host} list")


def _past_the_end(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A list with a next page even after its last one."""
    if path != "/list":
        return real_page(host, path, ["/list?page=1"] if path == "/" else [])
    page = int(query.get("page", "1"))
    onward = [f"/list?page={page + 1}", f"/list?page={page + 2}"]
    if page > REAL // 5:
        return Made("Entries", ["There are no more entries."], onward)
    entries = [f"/entry/{page * 4 + n}" for n in range(4)]
    return Made("Entries", ["Some of the entries that we have."], [*entries, *onward], f"{host} page {page}")


def _search(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A search for any words that finds some pages, shows a piece of each, and proposes other words."""
    real = _articles(host, path, first=["/search?q=first"])
    if real:
        return real
    random = Random(number_of(host, query.get("q", "")))
    found = [random.randint(1, REAL) for _ in range(5)]
    texts = [" ".join(real_page(host, f"article {number}", []).text).split() for number in found]
    starts = [random.randrange(max(1, len(text) - 12)) for text in texts]
    pieces = [" ".join(text[start : start + 12]) for text, start in zip(texts, starts, strict=True)]
    further = [f"/search?{urlencode({'q': f'{random.choice(text)} {random.choice(text)}'})}" for text in texts[:3]]
    return Made("Search", ["Pages that were found:", *pieces], [*(f"/articles/{n}" for n in found), *further])


def _history(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Endless revisions of every page, each to be compared with each."""
    real = _articles(host, path, first=["/history?page=1&offset=0"])
    if real:
        return real._replace(links=[*real.links, f"/history?page={path.rpartition('/')[2] or 1}&offset=0"])
    page, offset = int(query.get("page", "1")) % (REAL + 1) or 1, int(query.get("offset", "0"))
    random = Random(number_of(host, page, offset))
    other = [f"/history?page={page}&offset={offset + n}&diff={random.randint(1, 10**6)}" for n in (1, 2)]
    other.append(f"/history?page={page}&offset={offset + 50}")
    if "diff" not in query:
        rows = [f"{n}. {words(random, 1).title()}, {random.randint(1, 28)} {random.choice(MONTHS)}" for n in range(9)]
        return Made("Revisions", ["Choose two revisions to compare them.", *rows], other)
    text = real_page(host, f"article {page}", []).text
    return Made("Difference", [f"Revision {query['diff']}", *text[random.randint(0, 1) :]], other)


def _made_up(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A page for every request, with new text."""
    random = Random(number_of(host, path))
    folders = ["/".join(words(random, random.randint(1, 3)).split()) for _ in range(4)]
    links = [f"/{folder}/{words(random, 1)}" for folder in folders]
    return _articles(host, path, first=links[:2]) or _invented(host, path, links)


def _made_up_numbers(host: str, path: str, query: Mapping[str, str]) -> Made:
    """A page for every number, with new text."""
    random = Random(number_of(host, path, sorted(query.items())))
    links = [f"/entry?id={random.randint(1, 10**6)}" for _ in range(5)]
    return _articles(host, path, first=links[:2]) or _invented(host, query.get("id", path), links)


def _redirecting(host: str, path: str, query: Mapping[str, str]) -> Made:
    """Links that count clicks: each leads to another one, and none to a page."""
    go = [f"/go/{number_of(host, path, n):x}" for n in range(3)]
    return _articles(host, path, first=go) or Made("Moved", [], [], leads_to=go[0])


def _invented(host: str, name: str, links: list[str]) -> Made:
    return real_page(host, f"invented {name}", links)._replace(real="")


KINDS: Mapping[str, Callable[[str, str, Mapping[str, str]], Made]] = {
    "honest": honest, "calendar": _calendar, "repeated": _repeated, "deeper": _deeper, "longer": _longer,
    "session-in-query": _session_in_query, "session-in-path": _session_in_path, "soft-404": _soft_404,
    "hosts": _hosts, "facets": _facets, "past-the-end": _past_the_end, "search": _search, "history": _history,
    "forum": forum, "results": results, "made-up": _made_up, "made-up-numbers": _made_up_numbers,
    "suggesting": suggesting, "redirecting": _redirecting, "moved": moved,
}  # fmt: skip
DEEP = ["forum", "results"]  # honest, with more pages
# Added when the guard had long been done:
LATER = ["search", "history", "made-up", "made-up-numbers", "suggesting", "redirecting", "moved", *DEEP]
TRAPS = [kind for kind in KINDS if kind not in ("honest", *LATER)]
HELD_BACK = ["longer", "session-in-path", "soft-404"]  # not played until the guard was done


def hosts_of(kinds: Sequence[str], honest: int) -> Iterator[str]:
    """Yield the hosts of a web: one of each kind of trap, and `honest` ones."""
    yield from (f"{kind}-0.hostile" for kind in kinds)
    yield from (f"honest-{number}.hostile" for number in range(honest))
