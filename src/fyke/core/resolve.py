"""From what a page says to where it points: links resolved, a page at a time.

Called once a page with every href in it, some sixty, so this is the hottest code beside the HTML
parser. Most hrefs repeat from page to page, hence tables: one per *directory* of the base URL for
what is relative to it, one per *site* (scheme, host, port) for what begins with a slash, one for what
begins with `http://` or `https://`, the same from everywhere. An href the tables lack
takes a fast path when its characters prove that nothing in it needs normalising, else the WHATWG
parser. What depends on the whole base (`""`, `"?q"`, `"#x"`) is never remembered.

Invariant: `resolve` gives exactly what `canonical` and `locate` of `fyke.core.urls` give of the schemes that are
fetched, whatever is in the tables; all are emptied when they hold more than `cache_links`.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from xxhash import xxh3_64_intdigest

from fyke.core.urls import MAX_URL_BYTES, SCHEMES, Locator, canonical, host_keys, locate, split

# Fast paths: characters WHATWG leaves alone, no dot segments, escapes in capitals and of reserved characters only.
_ESCAPE = r"%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF]|[89A-F][0-9A-F])"
_SEGMENT = rf"(?!\.)[\w~!$&'()*+,;=:@.-]*(?:{_ESCAPE}[\w~!$&'()*+,;=:@.-]*)*"
_QUERY = rf"(?:\?(?:[\w~!$&()*+,;=:@./?-]|{_ESCAPE})+)?"
_PATH = rf"(?:/{_SEGMENT})+{_QUERY}"
_FRAGMENT = r"(?:#[!-~]*)?"
_ROOTED = re.compile(rf"(?!//)({_PATH}){_FRAGMENT}", re.ASCII)
_ABSOLUTE = re.compile(rf"(https?://[a-z0-9.-]+(?::\d+)?)({_PATH})?{_FRAGMENT}", re.ASCII)
_RELATIVE = re.compile(rf"((?:\.\./)*)(?!\.)([\w~!$&'()*+,;=@.-]+(?:/{_SEGMENT})*{_QUERY}){_FRAGMENT}", re.ASCII)

# Of a base: its root, its directory and the file, without anything a parser would alter.
_BASE = re.compile(r"(([a-z][a-z0-9+.-]*://[^/?#\\]+)/(?:[^?#\\]*/)?)([^/?#\\]*)(?:[?#][!-~]*)?")
_DOTS = re.compile(r"(?:\.|%2[eE]){1,2}")
_PRINTABLE = re.compile(r"[!-~]*")
# Resolves to the base itself, or to it with another query. "http:?q" is one of them; so is " #x".
_WHOLE = re.compile(r"[\x00-\x20]*+(?:[a-zA-Z\t\r\n]*+:)?[\x00-\x20]*+(?:\Z|[?#])")

_LONG_HREF = 256  # a longer one hardly repeats
_TABLE_COST = 8  # links a table counts for, empty
_new_locator: Final = tuple.__new__


@dataclass(frozen=True, slots=True)
class ResolverStatistics:
    """Links since the start, by how they were resolved; and what the tables hold now."""

    links: int
    hits: int
    fast: int
    slow: int
    invalid: int  # of the slow ones: not links to anything Fyke can fetch
    held: int
    emptied: int


class LinkResolver:
    """Resolves links against the page they are on; remembers about `cache_links` of them.

    What has none of `schemes` is no link to anything that can be fetched. Those of http and https always are.
    """

    def __init__(self, cache_links: int, schemes: Collection[str] = SCHEMES) -> None:
        self._cache_links = cache_links
        self._schemes = frozenset(schemes)
        self._directories: dict[str, _Directory] = {}
        self._sites: dict[str, _Site] = {}
        self._absolute = _Absolute(self)
        self.known: dict[str, tuple[int, int]] = {}  # canonical roots and their keys of host and domain
        self.held = 0
        self.fast = 0
        self.slow = 0
        self.invalid = 0
        self._links = 0
        self._missed = 0
        self._emptied = 0

    def __repr__(self) -> str:
        return f"LinkResolver({self.held} of {self._cache_links} links held)"

    def resolve(self, base: str, hrefs: Sequence[str]) -> list[Locator]:
        """The locators of those of `hrefs` that are URLs when seen from `base`, in order, repeats included."""
        self._links += len(hrefs)
        if self.held > self._cache_links:
            self._empty()
        directory = self._directory(base)
        if directory is None:
            found = [self.parsed(href, base) for href in hrefs]
        else:
            directory.base = base
            # Most pages write all their links one way, and they were met before: then one pass in C will do.
            table = self._absolute if hrefs and hrefs[0].startswith("http") else directory
            found = list(map(table.get, hrefs))
            if None in found:
                found = [at or directory[href] for href, at in zip(hrefs, found, strict=True)]
        return list(filter(None, found))

    def statistics(self) -> ResolverStatistics:
        """Counts since the start."""
        hits = self._links - self.fast - self.slow
        return ResolverStatistics(self._links, hits, self.fast, self.slow, self.invalid, self.held, self._emptied)

    def parsed(self, href: str, base: str) -> Locator | None:
        """`href` by the WHATWG parser; None when it is no URL that can be fetched."""
        self.slow += 1
        url = canonical(href, base)
        if url is None or url[: url.index(":")] not in self._schemes:
            self.invalid += 1
            return None
        return locate(url)

    def remembered(
        self, table: dict[str, Locator | None], href: str, locator: Locator | None, base: str
    ) -> Locator | None:
        """What `href` means, put into `table`: `locator` if a fast path found it, else by the parser."""
        if locator is None:
            locator = self.parsed(href, base)
        else:
            self.fast += 1
        if len(href) <= _LONG_HREF:
            table[href] = locator
            self.held += 1
        return locator

    def learn(self, root: str) -> None:
        """Take note of `root` (scheme, host, port), should it be canonical."""
        if canonical(root) == f"{root}/":
            self.known[root] = host_keys(split(f"{root}/").host)
            self.held += 1

    def _empty(self) -> None:
        self._directories.clear()
        self._sites.clear()
        self._absolute.clear()
        self.known.clear()
        self.held = 0
        self._emptied += 1

    def _directory(self, base: str) -> "_Directory | None":
        """The table for `base`; None when the base is not plain enough to have one."""
        match = _BASE.fullmatch(base)
        if match is None or len(base) > MAX_URL_BYTES:
            return None
        place, root, file = match.groups()
        table = self._directories.get(place)
        if table is None:
            if canonical(place) != place:
                return None
            table = self._directories[place] = _Directory(self, place, self._site(root), self._absolute)
            self.held += _TABLE_COST
        return table if _PRINTABLE.fullmatch(file) and not _DOTS.fullmatch(file) else None

    def _site(self, root: str) -> "_Site":
        site = self._sites.get(root)
        if site is None:
            site = self._sites[root] = _Site(self, root)
            self.held += _TABLE_COST
        return site


class _Absolute(dict[str, Locator | None]):
    """Links that begin with `http://` or `https://`."""

    def __init__(self, resolver: LinkResolver) -> None:
        self._resolver = resolver

    def __missing__(self, href: str) -> Locator | None:
        return self._resolver.remembered(self, href, self._fast(href), "http://a/")

    def _fast(self, href: str) -> Locator | None:
        match = _ABSOLUTE.fullmatch(href)
        if match is None:
            return None
        root = match[1]
        keys = self._resolver.known.get(root)
        if keys is None:
            self._resolver.learn(root)
            return None
        return _joined(root, match[2] or "/", keys)


class _Site(dict[str, Locator | None]):
    """Links that begin with a slash: the same from every page of a site."""

    def __init__(self, resolver: LinkResolver, root: str) -> None:
        self._resolver = resolver
        self._root = root
        self._slash = f"{root}/"
        self.host_and_domain = host_keys(split(self._slash).host)

    def __missing__(self, href: str) -> Locator | None:
        match = _ROOTED.fullmatch(href)
        locator = _joined(self._root, match[1], self.host_and_domain) if match else None
        return self._resolver.remembered(self, href, locator, self._slash)


class _Directory(dict[str, Locator | None]):
    """Links as pages in one directory write them. `base` is the page they are asked for now."""

    def __init__(self, resolver: LinkResolver, place: str, site: _Site, absolute: _Absolute) -> None:
        self._resolver = resolver
        self._place = place
        self._site = site
        self._absolute = absolute
        self._keys = site.host_and_domain
        self._above = _directories_above(place)
        self.base = place

    def __missing__(self, href: str) -> Locator | None:
        if href[:1] == "/":
            locator = self._site[href]
            if len(href) <= _LONG_HREF:
                self[href] = locator
                self._resolver.held += 1
            return locator
        if href.startswith(("http://", "https://")):
            return self._absolute[href]
        locator = self._fast(href)
        if locator is None and _WHOLE.match(href):
            return self._resolver.parsed(href, self.base)
        return self._resolver.remembered(self, href, locator, self._place)

    def _fast(self, href: str) -> Locator | None:
        match = _RELATIVE.fullmatch(href)
        if match is None:
            return None
        ups, rest = match.groups()
        place = self._above[min(len(ups) // 3, len(self._above) - 1)] if ups else self._place
        return _joined(place, rest, self._keys)


def _directories_above(place: str) -> list[str]:
    """`place` (a canonical directory), its parent, and so on up to the root."""
    above = [place]
    while place.count("/") > 3:
        place = place[: place.rindex("/", 0, -1) + 1]
        above.append(place)
    return above


def _joined(place: str, rest: str, keys: tuple[int, int]) -> Locator | None:
    text = f"{place}{rest}".encode()
    if len(text) > MAX_URL_BYTES:
        return None
    return _new_locator(Locator, (text, xxh3_64_intdigest(text), *keys))
