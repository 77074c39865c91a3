"""Which hosts make up a page for any URL? A few requests for pages that cannot be there tell.

Every page of a site that makes up its text is fresh, so what pages bring never tells it from an archive. A *probe*
does: a visit to a page that cannot be there. Bar-Yossef et al. ("Sic transit gloria telae", WWW 2004) find pages that
are gone in this way. A *place* is the kinds of the parts of a URL's path and the names in its query
(`fyke.core.shapes`). If `ASK_AFTER` pages of a place were fresh and its host has *grown*, the host is asked for a page
there whose name nobody can know. The place is cleared by no answer, an error, a redirect, a page met before, or one
that says what an earlier answer to a probe said (`fyke.harvest.new_text`). New text leads to another probe. `TRIES` in
a row convict the place; `MANY` places convict their host.

A host has grown if, since its first fresh page, `GROWN` URLs of it were found and `GROWTH` more for each visit, and if
its latest visits too found `GROWTH` each. Waiting traps count as found, because lists that each lead to the next and to
copies are as endless. Only `grown`, by which traps get their share of visits, leaves them out. A site without end
grows. A site whose front page leads to all of it, or whose pages each lead to the next, seldom does. A host is asked
about a further place after `REST_PAGES` fresh pages for each place before. Once a place is convicted, `ASK_SOON` fresh
pages at a place are enough. If `ASK_HOSTS` hosts of a domain had fresh pages, `TRIES` made-up hosts of the domain are
asked. New text at each convicts all hosts of the domain except for those with `ASK_AFTER` fresh pages, and for the host
with the domain's own name, which is no name made up.

Robots rules, filters and rests hold for probes as for all visits. Probes are archived and are no pages: nothing is
counted, and no link of them is followed.

An honest site logs a probe as a fault, and a crawl with probes asks for more than the pages that links lead to. So
hosts are asked only if a person wants it (`frontier.probes`). Domains are asked in any case, because a name that is not
there is nobody's server. A conviction lasts as long as that setting. The texts that answers are compared with are lost
at a restart, so places under trial are asked anew.

Bounded by `PLACES` records, and as many numbers of what was found of hosts lately, lost at a restart. A record gives
way if it was met less often than those that would take its place, or is convicted while more than half of all are.
"""

import re
from collections.abc import Mapping
from string import ascii_letters, ascii_lowercase
from typing import Any

import numpy as np
import xxhash

from fyke.core.batches import U64, Mask
from fyke.core.mixing import GOLDEN
from fyke.core.shapes import MOST_CHARS, Shapes
from fyke.core.urls import pay_level_domain, split
from fyke.disk.store import Store

PLACES = 1 << 15
ASK_AFTER = 16
ASK_SOON = 4
ASK_HOSTS = 8
GROWTH = 1.5  # URLs found for each visit
GROWN = 64
PACE = 3.5  # URLs found for each of the latest visits
MOST_PACE = 2 * PACE  # a front page that leads to a whole site is soon forgotten
LATELY = 8  # visits
REST_PAGES = 50
TRIES = 3
MANY = 2
LETTERS = 25  # of a made-up name, at most
LEAST_LETTERS = 8
DIGITS = 12
MOST_NUMBERS = 4  # of a name that are made up, the last ones: each may grow longer
MOST_LABEL = 63  # letters of a part of a host's name, and of all of it (RFC 1035, 2.3.4)
MOST_HOST = 253
_COUNTS = [(name, "<u4") for name in ("fresh", "found", "aside", "visited")] + [("asked", "<u2"), ("made", "u1")]
_RECORD = np.dtype([("key", "<u8"), ("owner", "<u8"), *_COUNTS])  # of a place at a host, of a host, of a domain
_DOMAIN = int(GOLDEN)  # keeps a domain's key apart from that of the host with the same name
_NUMBER = re.compile(r"[0-9]+")
_DIGEST = re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}\b")
_WORD = re.compile(r"[a-z]+")
_VALUE = re.compile(r"=([^&]*)")
_EXTENSION = re.compile(r"\.[a-z0-9]{1,5}$")


class Probes:
    """Records of places, hosts and domains, and the URLs to ask for."""

    def __init__(
        self,
        store: Store,
        state: Mapping[str, Any] | None = None,
        *,
        asks_domains: bool = True,
        asks_hosts: bool = True,
    ) -> None:
        """Set whether domains and hosts are asked. If they are not, none is convicted, and old convictions are
        forgiven."""
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
        self.forgave = bool(forgiven.any())  # traps of these may go on

    def __repr__(self) -> str:
        return f"Probes({len(self)} places of {len(self.owners)} hosts and domains make up pages)"

    def __len__(self) -> int:
        """Number of convicted places, hosts and domains."""
        return len(self._convicted)

    def note_fresh(self, url: str, like: Shapes[str], host: int, domain: int) -> None:
        """Note that the page `url`, of the shapes `like`, was fresh."""
        if not self._asks_domains:
            return
        place, whole = self._record(place_key(like, host), host), self._record(host, host)
        if not whole["fresh"]:
            self._note_fresh_host(url, domain)
        for record in (place, whole):
            record["fresh"] += 1
        self._changed = True
        if not self._asks_hosts or place["asked"] or whole["made"] >= MANY:
            return
        least, rest = (ASK_SOON, 0) if whole["made"] else (ASK_AFTER, REST_PAGES)
        is_due = place["fresh"] >= least and whole["fresh"] >= rest * int(whole["asked"])
        if is_due and _has_grown(whole, whole["found"]) and self._pace[host % PLACES] >= GROWTH:
            whole["asked"] += self._ask(place, url)

    def _note_fresh_host(self, url: str, domain: int) -> None:
        """Note that the page `url` is the first fresh one of its host."""
        hosts = self._record(domain ^ _DOMAIN, domain)
        hosts["fresh"] += 1
        if hosts["fresh"] >= ASK_HOSTS and not hosts["asked"]:
            while hosts["asked"] < TRIES and self._ask(hosts, url):
                pass

    def note_found(self, hosts: U64, domains: U64) -> None:
        """Note that new URLs were found of these hosts and domains (uint64[n] each, with repeats)."""
        self._count("found", hosts, domains)
        places = hosts % PLACES
        np.add.at(self._pace, places, 1 / LATELY)
        self._pace[places] = np.minimum(self._pace[places], MOST_PACE)

    def note_put_aside(self, hosts: U64, domains: U64) -> None:
        """Note that found URLs of these hosts and domains (uint64[n] each, with repeats) wait as traps."""
        self._count("aside", hosts, domains)

    def note_visited(self, hosts: U64, domains: U64) -> Mask:
        """Note that visits to URLs of these hosts and domains (uint64[n] each, with repeats) are over. Returns which of
        the hosts have no end in sight: bool[n]."""
        endless = self._have_no_end(hosts)  # before these visits count, whose links are not found yet
        self._count("visited", hosts, domains)
        np.multiply.at(self._pace, hosts % PLACES, 1 - 1 / LATELY)
        return endless

    def _count(self, name: str, hosts: U64, domains: U64) -> None:
        for keys in (hosts, domains ^ np.uint64(_DOMAIN)):
            keys, counts = np.unique(keys, return_counts=True)
            known = self._records["key"][keys % PLACES] == keys
            self._records[name][keys[known] % PLACES] += counts[known].astype(np.uint32)
            self._changed |= bool(known.any())

    def grown(self, hosts: U64, domains: U64) -> Mask:
        """Return which of these hosts, or their domains (uint64[n] each), grow faster than they are read: bool[n]."""
        grown: Mask = np.zeros(len(hosts), np.bool_)
        for keys in (hosts, domains ^ np.uint64(_DOMAIN)):
            known = self._records[keys % PLACES]
            grown |= (known["key"] == keys) & _has_grown(known, _going_on(known))
        return grown

    def _have_no_end(self, hosts: U64) -> Mask:
        """Return which of these hosts (uint64[n]) were visited `ASK_AFTER` times or more since their first fresh page,
        while `PACE` URLs or more are still found for each visit: bool[n]."""
        places = hosts % PLACES
        known = self._records[places]
        goes_on = (known["visited"] >= ASK_AFTER) & (self._pace[places] >= PACE)
        endless: Mask = (known["key"] == hosts) & goes_on
        return endless

    def note_answer(self, url: str, about: int, *, made_up: bool) -> int:
        """Note the answer to the made-up `url`, which `take` gave together with the key it is `about`; `made_up`: it
        was new text. Returns the host or domain that this convicts, or 0."""
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
        """Return which of these places (`place_key`), their hosts or domains (uint64[n] each) are convicted:
        bool[n]."""
        of_domain: Mask = self._are_convicted(domains ^ np.uint64(_DOMAIN))
        of_domain &= (hosts != domains) & ~self.proven(hosts, ASK_AFTER)
        return self._are_convicted(places) | self._are_convicted(hosts) | of_domain

    def _are_convicted(self, keys: U64) -> Mask:
        return np.fromiter(map(self._convicted.__contains__, keys.tolist()), np.bool_, len(keys))

    def proven(self, hosts: U64, pages: int = ASK_SOON) -> Mask:
        """Return which of these hosts (uint64[n]) had `pages` fresh pages or more: bool[n]."""
        known = self._records[hosts % PLACES]
        proven: Mask = (known["key"] == hosts) & (known["fresh"] >= pages)
        return proven

    def take(self) -> list[tuple[str, int]]:
        """Return the URLs to ask for since the last call, each with the key of the place or domain that it is about."""
        urls, self._urls = self._urls, []
        return urls

    def _ask(self, about: Any, url: str) -> bool:
        """Ask for a made-up URL like `url`. Returns whether one could be made."""
        number = xxhash.xxh3_128_intdigest(url.encode(), int(about["asked"]))
        made_up = (host_made_up_like if _is_domain(about) else made_up_like)(url, number)
        if made_up:
            about["asked"] += 1
            self._urls.append((made_up, int(about["key"])))
        return bool(made_up)

    def _record(self, key: int, owner: int) -> Any:
        """Return the record with this key; a new one that is not kept, if another record holds its place."""
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
        self.owners = set(convicted["owner"].tolist())  # owners of convicted places, hosts and domains

    def state(self) -> dict[str, Any]:
        records = self._records[self._records["key"] != 0]
        if self._changed:
            self._file = self._store.write_array("probes", records, self._file)
            self._changed = False
        return {"file": self._file, "places": len(records)}


def place_key(like: Shapes[str], host: int) -> int:
    """Return the key of the place at `host` of URLs with these shapes."""
    return xxhash.xxh3_64_intdigest(f"place {like.kinds}".encode(), host)


def _is_domain(record: Any) -> bool:
    return bool(record["key"] == record["owner"] ^ np.uint64(_DOMAIN))


def _has_grown(records: Any, found: Any) -> Any:
    """Return whether each of `records` grows faster than it is read, with `found` URLs of it."""
    return found >= GROWN + GROWTH * records["visited"]


def _going_on(records: Any) -> Any:
    """Return how many of the URLs found were not put aside as traps."""
    return records["found"] - np.minimum(records["found"], records["aside"])


def host_made_up_like(url: str, number: int) -> str:
    """Return the front page of a made-up host beside the host of the canonical `url`. Empty if that is the domain
    itself or an address, which leave no name to make up. A name that would be too long keeps nothing of the host's;
    otherwise hosts with long names would never be found out."""
    scheme, _, authority, _ = url.split("/", 3)
    host = split(url).host
    domain = pay_level_domain(host)
    if domain == host:
        return ""
    label, _, beside = host.partition(".")
    word = max(_WORD.findall(label), key=len, default=label)  # the rest of the label may have to be there
    made_up = label.replace(word, _letters(number)[: max(LEAST_LETTERS, len(word))], 1)
    if len(made_up) > MOST_LABEL:
        made_up = _letters(number)
    name = f"{made_up}.{beside}"
    name = name if len(name) <= MOST_HOST else f"{_letters(number)}.{domain}"
    return f"{scheme}//{name}{authority.removeprefix(host)}/"


def made_up_like(url: str, number: int) -> str:
    """Return a URL like the canonical `url` that nobody can know, made by `number` (128 bits). It has another last
    value in its query, or another query if that has no values, or without a query another last part of the path. Empty
    if the path has no part, or if `url` is longer than `MOST_CHARS`."""
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
    """Return a name of the same form, as far as servers look at it: with other digests, or with numbers too great to be
    counted up to, or with another last word."""
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
