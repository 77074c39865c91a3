"""Which hosts make up a page for whatever is asked of them? Told by asking, rarely, for pages that cannot be there.

Every page of a site that makes up its text is fresh, so what it yields never tells it from an archive. What tells it is
what Bar-Yossef et al. ("Sic transit gloria telae", WWW 2004) do to find pages that are gone. A *place* is what kinds of
parts a URL's path has and which names its query (`fyke.core.shapes`). Where `ASK_AFTER` pages of a place were fresh,
and its host has *grown*, it is asked for a page there whose name nobody can know. No answer, an error, a redirect, a
page met before, or one that says what the last such page said (`fyke.harvest.new_text`): that clears the place. New
text leads to another try, and `TRIES` of them in a row convict it; `MANY` places convict their host.

A host has grown when more was found of it, since its first fresh page, than `GROWTH` for each visit and `GROWN` more.
What waits as traps is found as well: lists that each lead to the next and to copies are as endless. A domain grows, and
a host for whom nothing else would go on (`grown`), by what does not wait.
A site of some hundred pages seldom does, nor one whose pages each lead to the next; a site without end does. Other
places of a host are asked about after `REST_PAGES` fresh pages for each before, and where one is convicted as soon as
`ASK_SOON` were fresh there. A domain of which `ASK_HOSTS` hosts were fresh is asked at `TRIES` hosts that nobody can
know; new text at each convicts all its hosts but those with `ASK_AFTER` fresh pages.

Robots rules, the filters and rests hold for probes as for all visits; they are archived,
and are no pages: nothing is counted, and no link of them followed.

An honest site logs such a request as a fault, and who counts what was asked for as one too many: so hosts are asked
where a person wants it (`frontier.probes`), domains in any case, since a name that is not there is nobody's server.
Who is convicted stays so as long. What a probe's answer is held against is lost at a restart, so that
trials that are not over begin anew then.

Bounded by `PLACES` records, and as many numbers that say what was found of a host lately, which are lost at a restart.
A record gives way when it was met less often than those that would have its seat, or is convicted while more than half
of all are.
"""

import re
from collections.abc import Mapping
from string import ascii_letters, ascii_lowercase
from typing import Any

import numpy as np
import xxhash

from fyke.core.batches import U64, Mask
from fyke.core.shapes import MOST_CHARS, Shapes
from fyke.core.urls import pay_level_domain, split
from fyke.disk.store import Store

PLACES = 1 << 15
ASK_AFTER = 16
ASK_SOON = 4
ASK_HOSTS = 8
GROWTH = 1.5  # URLs found, for each that was visited
GROWN = 64
PACE = 3.5  # URLs found for each visit, of the latest
LATELY = 8  # visits
REST_PAGES = 50
TRIES = 3
MANY = 2
LETTERS = 25  # of a made-up name, at most
LEAST_LETTERS = 8
DIGITS = 12
MOST_NUMBERS = 4  # of a name that are made up, its last: each may be longer than it was
MOST_LABEL = 63  # letters of a part of a host's name, and of all of it (RFC 1035, 2.3.4)
MOST_HOST = 253
_COUNTS = [(name, "<u4") for name in ("fresh", "found", "aside", "visited")] + [("asked", "<u2"), ("made", "u1")]
_RECORD = np.dtype([("key", "<u8"), ("owner", "<u8"), *_COUNTS])  # of a place at a host, of a host, of a domain
_DOMAIN = 0x9E3779B97F4A7C15  # apart from the key of a domain is that of the host with its name
_NUMBER = re.compile(r"[0-9]+")
_DIGEST = re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}\b")
_WORD = re.compile(r"[a-z]+")
_VALUE = re.compile(r"=([^&]*)")
_EXTENSION = re.compile(r"\.[a-z0-9]{1,5}$")


class Probes:
    """What is known of places, and the URLs to ask for."""

    def __init__(
        self,
        store: Store,
        state: Mapping[str, Any] | None = None,
        *,
        asks_domains: bool = True,
        asks_hosts: bool = True,
    ) -> None:
        """Who is not asked is not convicted, and no more so if it was: domains, hosts."""
        saved = state or {}
        self._store = store
        self._asks_domains, self._asks_hosts = asks_domains, asks_hosts
        self._file = str(saved.get("file", ""))
        self._records = np.zeros(PLACES, _RECORD)
        known = store.array(self._file, _RECORD, int(saved.get("places", 0)))
        self._records[known["key"] % PLACES] = known
        self._pace = np.zeros(PLACES, np.float32)  # URLs found of a host for each of its latest visits
        self._urls: list[tuple[str, int]] = []
        self._changed = False
        open_trials = (self._records["made"] < TRIES) & (self._records["key"] != self._records["owner"])
        self._records["asked"][open_trials] = 0
        are_domains = self._records["key"] == self._records["owner"] ^ np.uint64(_DOMAIN)
        forgiven = np.where(are_domains, not asks_domains, not asks_hosts) & (self._records["made"] > 0)
        self._records["made"][open_trials | forgiven] = 0
        self._changed |= bool(forgiven.any())
        self._judge()
        self.forgave = bool(forgiven.any())  # who waits for them may go on

    def __repr__(self) -> str:
        return f"Probes({len(self)} places of {len(self.owners)} hosts and domains make up pages)"

    def __len__(self) -> int:
        """Places, hosts and domains that are convicted."""
        return len(self._convicted)

    def fresh(self, url: str, like: Shapes, host: int, domain: int) -> None:
        """The page `url`, of the shapes `like`, brought new text."""
        if not self._asks_domains:
            return
        place, whole = self._record(place_key(like, host), host), self._record(host, host)
        if not whole["fresh"]:
            self._fresh_host(url, domain)
        for record in (place, whole):
            record["fresh"] += 1
        self._changed = True
        if not self._asks_hosts or place["asked"] or whole["made"] >= MANY:
            return
        least, rest = (ASK_SOON, 0) if whole["made"] else (ASK_AFTER, REST_PAGES)
        is_due = place["fresh"] >= least and whole["fresh"] >= rest * int(whole["asked"])
        if is_due and _has_grown(whole, whole["found"]):
            whole["asked"] += self._ask(place, url)

    def _fresh_host(self, url: str, domain: int) -> None:
        """The page `url` is the first of its host that brought new text."""
        hosts = self._record(domain ^ _DOMAIN, domain)
        hosts["fresh"] += 1
        if hosts["fresh"] >= ASK_HOSTS and not hosts["asked"]:
            while hosts["asked"] < TRIES and self._ask(hosts, url):
                pass

    def found(self, hosts: U64, domains: U64) -> None:
        """URLs that nobody had met were found, of these hosts and domains (uint64[n] each, with repeats)."""
        self._count("found", hosts, domains)
        np.add.at(self._pace, hosts % PLACES, 1 / LATELY)

    def put_aside(self, hosts: U64, domains: U64) -> None:
        """Of what was found, these wait as traps: hosts and domains (uint64[n] each, with repeats)."""
        self._count("aside", hosts, domains)

    def visited(self, hosts: U64, domains: U64) -> None:
        """Visits to URLs of these hosts and domains (uint64[n] each, with repeats) are over."""
        self._count("visited", hosts, domains)
        np.multiply.at(self._pace, hosts % PLACES, 1 - 1 / LATELY)

    def _count(self, name: str, hosts: U64, domains: U64) -> None:
        for keys in (hosts, domains ^ np.uint64(_DOMAIN)):
            keys, counts = np.unique(keys, return_counts=True)
            known = self._records["key"][keys % PLACES] == keys
            self._records[name][keys[known] % PLACES] += counts[known].astype(np.uint32)
            self._changed |= bool(known.any())

    def grown(self, hosts: U64, domains: U64) -> Mask:
        """Which of these hosts, or their domains (uint64[n] each), grow faster than they are read: bool[n]."""
        grown: Mask = np.zeros(len(hosts), np.bool_)
        for keys in (hosts, domains ^ np.uint64(_DOMAIN)):
            known = self._records[keys % PLACES]
            grown |= (known["key"] == keys) & _has_grown(known, _going_on(known))
        return grown

    def have_no_end(self, hosts: U64) -> Mask:
        """Which of these hosts (uint64[n]) were visited `ASK_AFTER` times and more since their first fresh page, and
        still `PACE` URLs and more are found for each visit: bool[n]."""
        places = hosts % PLACES
        known = self._records[places]
        goes_on = (known["visited"] >= ASK_AFTER) & (self._pace[places] >= PACE)
        endless: Mask = (known["key"] == hosts) & goes_on
        return endless

    def answered(self, url: str, about: int, *, made_up: bool) -> int:
        """The made-up `url`, which `take` gave with what it is `about`, brought a page, of new text or not; the host or
        domain that is convicted by that, 0 for none."""
        asked = self._records[about % PLACES]
        if not made_up or asked["key"] != about or asked["made"] >= min(asked["asked"], TRIES):
            return 0
        asked["made"] += 1
        self._changed = True
        if asked["made"] < TRIES:
            if asked["asked"] < TRIES:
                self._ask(asked, url)
            return 0
        owner = int(asked["owner"])
        if not _is_domain(asked):
            whole = self._record(owner, owner)
            whole["made"] = min(255, int(whole["made"]) + 1)
        self._judge()
        return owner

    def make_up(self, places: U64, hosts: U64, domains: U64) -> Mask:
        """Which of these places (`place_key`), their hosts or domains (uint64[n] each) are convicted: bool[n]."""
        of_domain = self._are_convicted(domains ^ np.uint64(_DOMAIN)) & ~self.proven(hosts, ASK_AFTER)
        return self._are_convicted(places) | self._are_convicted(hosts) | of_domain

    def _are_convicted(self, keys: U64) -> Mask:
        return np.fromiter(map(self._convicted.__contains__, keys.tolist()), np.bool_, len(keys))

    def proven(self, hosts: U64, pages: int = ASK_SOON) -> Mask:
        """Which of these hosts (uint64[n]) had so many fresh pages: bool[n]."""
        known = self._records[hosts % PLACES]
        proven: Mask = (known["key"] == hosts) & (known["fresh"] >= pages)
        return proven

    def take(self) -> list[tuple[str, int]]:
        """URLs to ask for, since this was last asked, and what each is about."""
        urls, self._urls = self._urls, []
        return urls

    def _ask(self, about: Any, url: str) -> bool:
        """Ask for a URL like `url`, if one can be made of it."""
        number = xxhash.xxh3_128_intdigest(url.encode(), int(about["asked"]))
        made_up = (host_made_up_like if _is_domain(about) else made_up_like)(url, number)
        if made_up:
            about["asked"] += 1
            self._urls.append((made_up, int(about["key"])))
        return bool(made_up)

    def _record(self, key: int, owner: int) -> Any:
        """The record with this key; one that nobody keeps, where another has its seat."""
        record = self._records[key % PLACES]
        if record["key"] == key:
            return record
        convicted = bool(record["made"])
        if (convicted and len(self) < PLACES // 2) or record["fresh"] > 1:
            record["fresh"] -= record["fresh"] > 1
            record = np.zeros(1, _RECORD)[0]
        record["key"], record["owner"] = key, owner
        for name, _ in _COUNTS:
            record[name] = 0
        if convicted:
            self._judge()
        return record

    def _judge(self) -> None:
        are_hosts = self._records["key"] == self._records["owner"]
        convicted = self._records[self._records["made"] >= np.where(are_hosts, MANY, TRIES)]
        self._convicted = set(convicted["key"].tolist())
        self.owners = set(convicted["owner"].tolist())  # domains, and hosts with places, that are convicted

    def state(self) -> dict[str, Any]:
        records = self._records[self._records["key"] != 0]
        if self._changed:
            self._file = self._store.write_array("probes", records, self._file)
            self._changed = False
        return {"file": self._file, "places": len(records)}


def place_key(like: Shapes, host: int) -> int:
    """The key of the place at `host` where URLs of these shapes lie."""
    return xxhash.xxh3_64_intdigest(f"place {like.coarse[0]}".encode(), host)


def _is_domain(record: Any) -> bool:
    return bool(record["key"] == record["owner"] ^ np.uint64(_DOMAIN))


def _has_grown(records: Any, found: Any) -> Any:
    """Whether, by so many URLs `found` of it, each of `records` grows faster than it is read."""
    return found >= GROWN + GROWTH * records["visited"]


def _going_on(records: Any) -> Any:
    """Of what was found, how much did not come to wait as traps."""
    return records["found"] - np.minimum(records["found"], records["aside"])


def host_made_up_like(url: str, number: int) -> str:
    """The first page of a host, beside that of the canonical `url`, that nobody can know; empty for the domain itself
    and for addresses, which have no name to make up. Where it would be too long, its name has nothing of the other's:
    hosts of long names would never be found out."""
    scheme, _, authority, _ = url.split("/", 3)
    host = split(url).host
    domain = pay_level_domain(host)
    if domain == host:
        return ""
    label, _, beside = host.partition(".")
    word = max(_WORD.findall(label), key=len, default=label)  # what stands beside it may have to be there
    made_up = label.replace(word, _letters(number)[: max(LEAST_LETTERS, len(word))], 1)
    if len(made_up) > MOST_LABEL:
        made_up = _letters(number)
    name = f"{made_up}.{beside}"
    name = name if len(name) <= MOST_HOST else f"{_letters(number)}.{domain}"
    return f"{scheme}//{name}{authority.removeprefix(host)}/"


def made_up_like(url: str, number: int) -> str:
    """A URL like the canonical `url` that nobody can know, made by `number` (128 bits); empty where there is no part to
    make up. The last value of the query is another, or all of it without one; else the last part of the path."""
    if len(url) > MOST_CHARS:
        return ""
    before, mark, query = url.partition("?")
    if mark:
        values = list(_VALUE.finditer(query))
        begin, end = values[-1].span(1) if values else (0, len(query))
        return f"{before}?{query[:begin]}{_another(query[begin:end], number)}{query[end:]}"
    begin = before.find("/", before.find("://") + 3)
    path, slash = (before[:-1], "/") if before.endswith("/") else (before, "")
    folder, _, name = path.rpartition("/")
    if len(path) <= begin + 1 or not name:
        return ""
    extension = _EXTENSION.search(name)
    end = extension.start() if extension and extension.start() else len(name)
    return f"{folder}/{_another(name[:end], number)}{name[end:]}{slash}"


def _another(name: str, number: int) -> str:
    """A name of the same form, as far as servers look at it: with other digests, else with numbers that are too great
    to be counted up to, else with another last word."""
    if "%" in name:
        return _letters(number)
    if _DIGEST.search(name):
        digits = f"{number:032x}"
        return _DIGEST.sub(lambda found: (digits * len(found[0]))[: len(found[0])], name)
    if numbers := list(_NUMBER.finditer(name)):
        begin = numbers[-MOST_NUMBERS:][0].start()
        return name[:begin] + _NUMBER.sub(str(number % 9 + 1) + str(number).zfill(DIGITS)[: DIGITS - 1], name[begin:])
    begin = len(name.rstrip(ascii_letters))
    return name[:begin] + _letters(number)[: max(LEAST_LETTERS, len(name) - begin)]


def _letters(number: int) -> str:
    letters = ""
    while len(letters) < LETTERS:
        number, letter = divmod(number, len(ascii_lowercase))
        letters += ascii_lowercase[letter]
    return letters
