"""Pages of the virtual web that change, and how fresh the copies of a never-ending crawl are.

- `Pages` says how often a page has changed by any time. Changes are a Poisson process, counted by halving: the number
  of changes in the first half of a stretch is binomial. Bursty pages change for a tenth of the time, at ten times the
  rate. Rates are lognormal by domain and by page.
- `Lists` announces some of the changes.
- `Copies` tells the frontier of visits, as the table of pages does in a crawl, with version numbers in place of
  contents, and of list entries. It also follows a sample of pages to see the missed changes, which no crawler knows.

Invariant: versions are a pure function of spec, page and time.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fyke.core.batches import U64, Kind, Mask
from fyke.core.messages import DATED
from fyke.core.outcomes import Outcome
from fyke.core.visits import Visit, batch_of
from fyke.crawl.past import Past
from fyke.frontier.known_pages import KnownPages
from fyke.frontier.page_history import COPY, ENDED, News, Visited
from fyke.lab.simulate import texts
from fyke.lab.simulate.chance import F64, I64, dice, high, spread
from fyke.lab.simulate.domain_sizes import DomainSizes
from fyke.lab.simulate.texts import Text

HALVINGS = 31  # of 68 years, down to a second
MOST_SAMPLED = 20_000
BURST_SHARE = 0.1  # of the time
BISECTIONS = 6
LISTS = ((0.9, 0.9), (0.5, 0.5), (0.0, 1.0))  # share of changes announced, share of announced dates that are right
LIE_INTERVAL_S = 86400.0  # mean time between dates of a page in a lying list
MOST_LISTED = 500
_RATE_OF_DOMAIN, _RATE_OF_PAGE, _BURSTS, _CHANGES, _LISTED, _PRECISION, _ANNOUNCED = range(401, 408)
_OF_DOMAIN, _OF_PAGE = 1.2, 0.9  # sigmas of the rates


class Pages:
    """The pages of the web with this `seed`; the median page changes every `change_days`, some pages in bursts."""

    def __init__(self, seed: int, change_days: float, bursty_share: float, start: float) -> None:
        self._seed = seed
        self._rate = 1 / (change_days * 86400)
        self._bursty_share = bursty_share
        self._start = start

    def rates(self, domain: I64, page: I64) -> F64:
        """Return the long-term mean changes per second of each page: float64[n]."""
        rate = self._rate * spread(dice(self._seed, _RATE_OF_DOMAIN, domain), _OF_DOMAIN)
        return rate * spread(dice(self._seed, _RATE_OF_PAGE, domain, page), _OF_PAGE)

    def last_change(self, text: Text, since: float, now: float) -> tuple[Mask, F64]:
        """Return which pages changed in that time, bool[n], and about when last, float64[n]."""
        newest = self.versions(text, now)
        begin, end = np.full(len(text), since), np.full(len(text), now)
        changed: Mask = newest > self.versions(text, since)
        for _ in range(BISECTIONS if changed.any() else 0):
            middle = (begin + end) / 2
            later = self.versions(text, middle) < newest
            begin, end = np.where(later, middle, begin), np.where(later, end, middle)
        return changed, end

    def versions(self, text: Text, now: float | F64) -> I64:
        """Return how often each of these pages has changed by `now`: int64[n]."""
        domain, _, page = texts.read(text)
        rate = self.rates(domain, page)
        return _count(dice(self._seed, _CHANGES, domain, page), rate, self._time_on(domain, page, rate, now))

    def _time_on(self, domain: I64, page: I64, rate: F64, now: float | F64) -> F64:
        """Return the process time of each page; a bursty page spends each cycle of ten changes in its first tenth."""
        time = np.full(len(page), now - self._start)
        rolls = dice(self._seed, _BURSTS, domain, page)
        cycle = 10 / rate
        phase = time + high(dice(self._seed, _BURSTS, page, domain)) * cycle
        whole, rest = np.divmod(phase, cycle)
        bursty = whole * cycle + np.minimum(rest, BURST_SHARE * cycle) / BURST_SHARE
        return np.where(high(rolls) < self._bursty_share, bursty, time)


def _count(rolls: U64, rate: F64, time: F64) -> I64:
    """Return the changes of n Poisson processes in [0, time); the first draw is for the longest stretch."""
    stretch = 2.0**HALVINGS
    left = _poisson(rolls, rate * stretch)
    begin, count = np.zeros(len(time)), np.zeros(len(time), np.int64)
    for level in range(HALVINGS):
        stretch /= 2
        halves = dice(level + 1, _CHANGES, rolls.view(np.int64), (begin / stretch).astype(np.int64))
        first = _half_of(left, halves)
        later = time >= begin + stretch
        count += np.where(later, first, 0)
        left = np.where(later, left - first, first)
        begin = np.where(later, begin + stretch, begin)
    return count


def _poisson(rolls: U64, mean: F64) -> I64:
    """Return Poisson numbers by their normal approximation: means here are hundreds and more, or hardly matter."""
    return np.maximum(np.rint(mean + np.sqrt(mean) * _normal(rolls)), 0).astype(np.int64)


def _half_of(count: I64, rolls: U64) -> I64:
    """Return binomial numbers with probability 1/2: ones among `count` random bits, or their normal approximation."""
    few = np.minimum(count, 63).astype(np.uint64)
    ones = np.bitwise_count(rolls & ((np.uint64(1) << few) - np.uint64(1))).astype(np.int64)
    many = np.clip(np.rint(count / 2 + np.sqrt(count) / 2 * _normal(rolls)), 0, count).astype(np.int64)
    return np.where(count < 64, ones, many)


def _normal(rolls: U64) -> F64:
    """Return normal numbers: logarithms of lognormal ones."""
    found: F64 = np.log(spread(rolls, 1.0))
    return found


class TrueFreshness(NamedTuple):
    """The freshness of the sampled copies, and the results of visits to known pages so far."""

    pages: int
    fresh: float  # share of copies that miss no change
    stale: float  # mean of 1 + 1/2 + ... + 1/n over copies that miss n changes
    revisits: int
    changed: int  # of `revisits`


class Lists:
    """Lists on the home pages of a `share` of `domains`: a third precise, a third imprecise, a third lying."""

    def __init__(self, seed: int, pages: Pages, domains: DomainSizes, share: float) -> None:
        self._seed = seed
        self._pages = pages
        self._domains = domains
        self._share = share

    def there(self, domain: I64, page: I64) -> Mask:
        """Return which pages are lists: bool[n]."""
        listed = high(dice(self._seed, _LISTED, domain)) < self._share
        found: Mask = ~self._domains.is_spam(domain) & (page == 0) & listed
        return found

    def kind(self, domain: int) -> int:
        """Return which row of `LISTS` describes the list of `domain`."""
        return int(dice(self._seed, _PRECISION, np.array([domain]))[0] % np.uint64(len(LISTS)))

    def told(self, domain: int, since: float, now: float) -> pa.RecordBatch:
        """Return the changes that the list of `domain` announces for that time (schema `DATED`)."""
        page = np.arange(1, min(int(self._domains.pages[domain]), MOST_LISTED), dtype=np.int64)
        of = np.full(len(page), domain)
        text = texts.written(of, self._domains.host_of(of, page), page)
        chance, begun = high(dice(self._seed, _LISTED, page, of)), np.full(len(page), int(since))
        recall, precision = LISTS[self.kind(domain)]
        changed, at = self._pages.last_change(text, since, now)
        real = changed & (high(dice(self._seed, _ANNOUNCED, of, page, (at * 8).astype(np.int64))) < recall)
        often = recall * (1 - precision) / precision * self._pages.rates(of, page) if recall else 1 / LIE_INTERVAL_S
        false = high(dice(self._seed, _PRECISION, of, page, begun)) < -np.expm1(-often * (now - since))
        said = real | false
        when = np.where(real, at, since + chance * (now - since))
        columns = [pa.array(texts.keys(text)[said]), pa.array(texts.domain_keys(of)[said]), pa.array(when[said])]
        return pa.RecordBatch.from_arrays(columns, schema=DATED)


class Copies:
    """A crawl's copies of `pages`, reported to `known`."""

    def __init__(self, pages: Pages, lists: Lists, known: KnownPages, saved: dict[str, Any]) -> None:
        self._pages = pages
        self._lists = lists
        self._known = known
        self._past = Past(known, Path())
        self._below = int(saved.get("below", 1 << 64))  # pages with lower keys are sampled
        self._sampled: dict[str, int] = dict(saved.get("sampled", {}))  # versions of copies, by URL
        self._revisits, self._changed = saved.get("counts", (0, 0))

    def note_known(self, visits: Sequence[Visit]) -> None:
        """Note with each of `visits` what is known of its page."""
        self._past.note_known(visits)

    def ended(self, visits: Sequence[Visit], outcomes: Sequence[Outcome], now: float) -> list[Outcome]:
        """Report visits that ended `now`; return their outcomes, with unchanged pages marked."""
        if not visits:
            return []
        text = texts.of_strings([visit.url for visit in visits])
        versions = self._pages.versions(text, now) + 1
        came = np.array([outcome is Outcome.OK for outcome in outcomes])
        known = np.array([visit.earlier is not None and visit.earlier.place is not None for visit in visits])
        before = np.array([visit.earlier.fingerprint if visit.earlier is not None else 0 for visit in visits])
        same = came & known & (before == versions)
        self._revisits += int((came & known).sum())
        self._changed += int((came & known & ~same).sum())
        self._read_lists(visits, text, came, now)
        copies = np.zeros(len(visits), COPY)
        copies["fingerprint"], copies["length"] = versions, 1
        news = np.where(same, News.SAME, np.where(came, News.CHANGED, News.NONE)).astype(np.uint8)
        columns = [np.full(len(visits), Visited.THERE, np.uint8), news, np.full(len(visits), now)]
        rows = pa.RecordBatch.from_arrays([*batch_of(visits).columns, *map(pa.array, columns)], schema=ENDED)
        self._known.learn(rows, came, copies)
        self._sample(visits, versions, came)
        return [Outcome.UNCHANGED if one else outcome for one, outcome in zip(same.tolist(), outcomes, strict=True)]

    def _read_lists(self, visits: Sequence[Visit], text: Text, came: Mask, now: float) -> None:
        domain, _, page = texts.read(text)
        for row in np.flatnonzero(came & self._lists.there(domain, page)).tolist():
            visit = visits[row]
            visit.kind = Kind.LISTING
            if visit.earlier is not None and visit.earlier.at:
                self._known.note(self._lists.told(int(domain[row]), visit.earlier.at, now))

    def _sample(self, visits: Sequence[Visit], versions: I64, came: np.typing.NDArray[np.bool_]) -> None:
        for visit, version, there in zip(visits, versions.tolist(), came.tolist(), strict=True):
            if there and visit.key < self._below:
                self._sampled[visit.url] = version
        while len(self._sampled) > MOST_SAMPLED:
            self._below //= 2
            keys = texts.keys(texts.of_strings(list(self._sampled))).tolist()
            kept = zip(self._sampled.items(), keys, strict=True)
            self._sampled = dict(item for item, key in kept if key < self._below)

    def seen(self, now: float) -> TrueFreshness:
        """Return how fresh the sampled copies are."""
        if not self._sampled:
            return TrueFreshness(0, 0.0, 0.0, 0, 0)
        versions = self._pages.versions(texts.of_strings(list(self._sampled)), now) + 1
        missed = versions - np.fromiter(self._sampled.values(), np.int64, len(self._sampled))
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(missed.max()) + 1))])
        stale = float(harmonic[missed].mean())
        return TrueFreshness(len(missed), float((missed == 0).mean()), stale, self._revisits, self._changed)

    def state(self) -> dict[str, Any]:
        return {"below": self._below, "sampled": self._sampled, "counts": [self._revisits, self._changed]}
