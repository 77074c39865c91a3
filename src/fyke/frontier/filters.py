"""Which URLs are wanted at all: scope, depth, allow and deny, plug-ins.

The first stage after the links: a batch comes in, a mask goes out. The frontier calls it for every batch of links, and
`fyke why` for one URL, so a filter must be a pure function of its rows. A filter that raises on a row refuses it, and
is counted.

`Filters.marked` finds out whether a requisite is beyond the scope when it is handed out, and gives it the kind
`BEYOND`. Requisites of a `BEYOND` are `SECOND`, as fonts of a stylesheet are, and requisites of a `SECOND` are `THIRD`,
which pass only within the scope. Otherwise stylesheets that import one another would lead on without end.

Invariant: a seed passes every filter; a requisite passes the scope, two hops beyond it, and no more.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fyke.core.batches import NO_KEYS, U64, Kind, Mask, keep, numbers, u64, url_batch, with_column
from fyke.core.choices import Scope
from fyke.core.config import CrawlSection
from fyke.core.errors import ConfigurationError
from fyke.core.plugins import UrlFilter, code_of
from fyke.core.ports import LINE_PORTS, OTHERS_PORTS
from fyke.core.sorting import among
from fyke.core.urls import SCHEMES, Locator, split

REQUISITE_HOPS = 2  # from a page to its style sheet, and on to the fonts of that


class ScopeFilter:
    """The seeds alone; or their folders, hosts or domains, and those of the pages that they redirect to."""

    def __init__(self, scope: Scope, seeds: Sequence[Locator]) -> None:
        self.scope = scope
        self._hosts = NO_KEYS  # sorted, like the arrays below
        self._domains = NO_KEYS
        self._urls: set[bytes] = set()  # of seeds, if their folders matter
        self._folders: list[bytes] = []  # none of them within another
        self.begin(seeds)

    def begin(self, seeds: Sequence[Locator]) -> None:
        """Add `seeds` to those that the crawl begins at. They take 16 bytes of memory each at most, except in scopes by
        folder."""
        if self.scope in (Scope.SEEDS, Scope.WEB):
            return
        self._hosts = np.union1d(self._hosts, np.array([seed.host for seed in seeds], np.uint64))
        self._domains = np.union1d(self._domains, np.array([seed.domain for seed in seeds], np.uint64))
        if self.scope is Scope.PREFIX:
            self._urls.update(seed.url for seed in seeds)
            self._folders = _outermost([*self._folders, *(_folder(seed.url) for seed in seeds)])

    def land(self, seed: Locator, target: Locator) -> None:
        """Count `target`, to which `seed` redirects, as a seed from now on: a person who names example.org means
        www.example.org too. A folder named without its slash is replaced, because the server says what it is."""
        if target.url == seed.url + b"/" and seed.url in self._urls:
            self._urls.discard(seed.url)
            self._folders = _outermost(map(_folder, self._urls))
        self.begin([target])

    @property
    def domains(self) -> U64 | None:
        """Keys of the domains within the scope, sorted; None without a bound."""
        return None if self.scope is Scope.WEB else self._domains

    def __repr__(self) -> str:
        return f"scope {self.scope.value}"

    def accept(self, urls: pa.RecordBatch) -> Mask:
        required: Mask = np.isin(numbers(urls, "kind"), (Kind.REQUISITE, Kind.BEYOND, Kind.SECOND))
        return required | self.holds(urls)

    def holds(self, urls: pa.RecordBatch) -> Mask:
        """Return which of `urls` (n rows) are within the scope, whatever their kind: bool[n]."""
        if self.scope is Scope.WEB:
            return np.ones(urls.num_rows, bool)
        if self.scope is Scope.SEEDS:
            return np.zeros(urls.num_rows, bool)
        if self.scope is Scope.HOST:
            return among(u64(urls, "host"), self._hosts)
        if self.scope is Scope.DOMAIN:
            return among(u64(urls, "domain"), self._domains)
        return np.fromiter(map(self._below_a_folder, urls.column("url").to_pylist()), bool, urls.num_rows)

    def _below_a_folder(self, url: bytes) -> bool:
        """Return whether a folder holds `url`. One look is enough: no folder is within another, so only the last that
        sorts before can hold it."""
        at = bisect_right(self._folders, url)
        return at > 0 and url.startswith(self._folders[at - 1])


def _outermost(folders: Iterable[bytes]) -> list[bytes]:
    """Return those of `folders` that are in no other of them, sorted."""
    kept: list[bytes] = []
    for folder in sorted(folders):  # quick if most are in order
        if not (kept and folder.startswith(kept[-1])):
            kept.append(folder)
    return kept


def _folder(url: bytes) -> bytes:
    path = url.partition(b"?")[0]
    return path[: path.rindex(b"/") + 1]


class DepthFilter:
    """URLs within a number of links from a seed. Up to `REQUISITE_HOPS` links to requisites do not count: the style
    sheet of a page, and the fonts of that."""

    def __init__(self, depth: int) -> None:
        self._depth = depth

    def __repr__(self) -> str:
        return f"depth {self._depth}"

    def accept(self, urls: pa.RecordBatch) -> Mask:
        links = numbers(urls, "depth") - REQUISITE_HOPS * _are_requisites(urls)
        near: Mask = links <= self._depth
        return near


class SchemeFilter:
    """URLs of schemes that have a protocol module."""

    def __init__(self, schemes: Sequence[str]) -> None:
        self._prefixes = [f"{scheme}://".encode() for scheme in schemes]

    def __repr__(self) -> str:
        return "schemes " + " ".join(prefix[:-3].decode() for prefix in self._prefixes)

    def accept(self, urls: pa.RecordBatch) -> Mask:
        mask = np.zeros(urls.num_rows, bool)
        for prefix in self._prefixes:
            if mask.all():
                break
            mask |= _mask(pc.starts_with(urls.column("url"), pattern=prefix))
        return mask


class PortFilter:
    """URLs without ports of other protocols, except for ports of seeds. A plug-in may speak one of these."""

    def __init__(self, seeds: Sequence[Locator]) -> None:
        named = {split(seed.url.decode()).port for seed in seeds}
        of_gopher = {split(seed.url.decode()).port for seed in seeds if seed.url.startswith(b"gopher:")}
        refused = [("|".join(sorted(SCHEMES)), OTHERS_PORTS - named), ("gopher", LINE_PORTS - of_gopher)]
        self._pattern = "|".join(f"^(?:{scheme})://[^/]*:(?:{_one_of(ports)})/" for scheme, ports in refused)

    def __repr__(self) -> str:
        return "ports of other protocols"

    def accept(self, urls: pa.RecordBatch) -> Mask:
        return ~_mask(pc.match_substring_regex(urls.column("url"), self._pattern))


def _one_of(ports: Iterable[int]) -> str:
    return "|".join(map(str, sorted(ports)))


class PatternFilter:
    """URLs that match one of some RE2 expressions (`allow`), or none of them (`deny`).

    RE2 and not Python's `re`: it cannot backtrack, so no pattern makes a crawl stand still.
    """

    def __init__(self, patterns: Sequence[str], *, wanted: bool) -> None:
        self._pattern = "|".join(f"(?:{pattern})" for pattern in patterns)
        self._wanted = wanted
        for pattern in (*patterns, self._pattern):
            try:
                pc.match_substring_regex(pa.array([b""]), pattern)
            except pa.ArrowInvalid as error:
                which = repr(pattern) if pattern in patterns else f"of {len(patterns):,} expressions together"
                raise ConfigurationError(f"{'allow' if wanted else 'deny'} {which}: {str(error)[:200]}") from None

    def __repr__(self) -> str:
        return f"{'allow' if self._wanted else 'deny'} {self._pattern}"

    def accept(self, urls: pa.RecordBatch) -> Mask:
        matches = _mask(pc.match_substring_regex(urls.column("url"), self._pattern))
        return matches if self._wanted else ~matches


class Filters:
    """All filters of a crawl, in order; a URL must pass each."""

    def __init__(self, fixed: Sequence[UrlFilter], editable: Sequence[UrlFilter] = ()) -> None:
        """The `editable`, asked last, may be others when the crawl is resumed."""
        self._filters = [*fixed, *editable]
        self._editable = editable
        self.edited = [_with_code(wanted) for wanted in editable]  # names, which the next run compares with its own
        self.failures: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()  # refused rows, by the first filter that refused
        self._scope = next((one for one in fixed if isinstance(one, ScopeFilter)), ScopeFilter(Scope.WEB, ()))

    @property
    def domains(self) -> U64 | None:
        """Keys of the domains that pages may be in, sorted; None for any."""
        return self._scope.domains

    @property
    def by_folder(self) -> bool:
        """True if the scope is one of folders, so that the seeds themselves matter and not their hosts alone."""
        return self._scope.scope is Scope.PREFIX

    def begin(self, seeds: Sequence[Locator]) -> None:
        """Take `seeds` into the scope."""
        self._scope.begin(seeds)

    def land(self, seed: Locator, target: Locator) -> None:
        """Take the `target` of a redirect of `seed` into the scope."""
        self._scope.land(seed, target)

    def reaches(self, target: Locator) -> bool:
        """Return whether the scope holds `target`, be it a seed or not, or is that of the seeds alone."""
        return self._scope.scope is Scope.SEEDS or bool(self._scope.accept(url_batch([target]))[0])

    def accept(
        self, urls: pa.RecordBatch, put_aside: Callable[[pa.RecordBatch], object] = lambda refused: None
    ) -> pa.RecordBatch:
        """Return the rows of `urls` that every filter accepts, in order. `put_aside` is given the rows that only
        editable filters refuse."""
        for wanted in self._filters:
            if not urls.num_rows:
                break
            mask = self._ask(wanted, urls)
            if not mask.all():
                refused, urls = keep(urls, ~mask), keep(urls, mask)
                self.left_out[_name(wanted)] += refused.num_rows
                if wanted in self._editable:
                    put_aside(refused)
        return urls

    def still_accepted(self, urls: pa.RecordBatch) -> Mask:
        """Return which rows of `urls`, which every filter accepted once, the present ones accept: bool[n]."""
        mask: Mask = np.ones(urls.num_rows, bool)
        if self._editable and urls.num_rows:
            kinds = numbers(urls, "kind")
            urls = with_column(urls, "kind", np.where(kinds == Kind.BEYOND, Kind.REQUISITE, kinds))  # as it was found
            for wanted in self._editable:
                mask &= self._ask(wanted, urls)
        return mask

    def accepted(self, urls: pa.RecordBatch) -> Mask:
        """Return which rows of `urls` every filter accepts: bool[n]. Nothing is counted."""
        mask: Mask = np.ones(urls.num_rows, bool)
        for wanted in self._filters:
            mask &= self._ask(wanted, urls)
        return mask

    def refusal(self, url: pa.RecordBatch) -> str:
        """Return the name of the first filter that refuses `url` (one row), or the empty string."""
        return next((_name(wanted) for wanted in self._filters if not self._ask(wanted, url)[0]), "")

    def marked(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Return `urls` in which exactly the requisites within the present scope are `REQUISITE`."""
        rows = np.flatnonzero(_are_requisites(urls))
        if not len(rows):
            return urls
        kinds = numbers(urls, "kind").copy()
        within = self._scope.holds(urls.take(pa.array(rows)))
        beyond = np.where(kinds[rows] == Kind.REQUISITE, Kind.BEYOND, kinds[rows])
        kinds[rows] = np.where(within, Kind.REQUISITE, beyond)
        return with_column(urls, "kind", kinds)

    def _ask(self, wanted: UrlFilter, urls: pa.RecordBatch) -> Mask:
        """Return which of `urls` (n rows) a filter accepts, seeds in any case: bool[n]."""
        seeds: Mask = numbers(urls, "kind") == Kind.SEED
        try:
            mask = np.asarray(wanted.accept(urls))
        except Exception:  # noqa: BLE001 - a plug-in may raise anything; it then widens nothing
            mask = None
        if mask is not None and mask.dtype == bool and mask.shape == (urls.num_rows,):
            accepted: Mask = mask | seeds
            return accepted
        if mask is None and urls.num_rows > 1:  # find the row that makes it fail, so that only this one is lost
            return np.concatenate([self._ask(wanted, urls.slice(row, 1)) for row in range(urls.num_rows)])
        self.failures[type(wanted).__name__] += urls.num_rows
        return seeds


def filters_for(
    crawl: CrawlSection, seeds: Sequence[Locator], schemes: Sequence[str], plugins: Sequence[UrlFilter]
) -> Filters:
    """Return the filters that a crawl asks for, its plug-ins last."""
    filters: list[UrlFilter] = [SchemeFilter(schemes), PortFilter(seeds), ScopeFilter(crawl.scope, seeds)]
    if crawl.depth:
        filters.append(DepthFilter(crawl.depth))
    patterns = [(crawl.allow, True), (crawl.deny, False)]
    return Filters(filters, [*(PatternFilter(which, wanted=wanted) for which, wanted in patterns if which), *plugins])


def _are_requisites(urls: pa.RecordBatch) -> Mask:
    return np.isin(numbers(urls, "kind"), (Kind.REQUISITE, Kind.BEYOND, Kind.SECOND, Kind.THIRD))


def _name(wanted: UrlFilter) -> str:
    """Return a filter's name for a person: as it calls itself, or its type, and not its place in memory."""
    named = type(wanted).__repr__ is not object.__repr__
    with suppress(Exception):  # a plug-in may raise anything
        return repr(wanted) if named else type(wanted).__name__
    return type(wanted).__name__


def _with_code(wanted: UrlFilter) -> str:
    """Return a filter's name; of a plug-in with a digest of its code, from which `named_in` takes the name."""
    return _name(wanted) if isinstance(wanted, PatternFilter) else f"{_name(wanted)}\n{code_of(wanted)}"


def named_in(edited: str) -> str:
    """Return the name of the filter that is `edited` under this text."""
    return edited.partition("\n")[0]


def _mask(array: pa.BooleanArray) -> Mask:
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
