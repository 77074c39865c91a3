"""The virtual web: millions of domains and any number of pages; only the domains take memory.

`Simulation` and its fetcher ask it. A page's links, server, bytes and time are computed from the spec and the page's
number when asked, for thousands of pages at once. Nothing here knows of a crawl.

Invariant: a pure function of spec and question; two webs of one spec agree about everything.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, URLS, Kind, Mask
from fyke.lab.simulate import texts
from fyke.lab.simulate.chance import I64
from fyke.lab.simulate.domain_sizes import DomainSizes
from fyke.lab.simulate.link_targets import LinkStructure, PageNumbers
from fyke.lab.simulate.servers import ServerAnswers, VirtualServers
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.texts import Text

START = 1_000_000_000.0  # when every simulation begins, in seconds since the epoch
_BLOCK = 1 << 16

Numbers = npt.NDArray[np.integer] | int  # one for each row, or one for all


class DrawnLinks(NamedTuple):
    """n links, met on pages that were fetched."""

    urls: pa.RecordBatch  # schema `URLS`
    sources: U64  # uint64[n]: keys of the domains that the links come from
    spam: Mask  # bool[n]: whether the link leads to a farm


class VirtualWeb:
    """The web that `spec` describes."""

    def __init__(self, spec: VirtualWebSpec) -> None:
        self.spec = spec
        self.domains = DomainSizes(spec)
        self._links = LinkStructure(spec, self.domains)
        self._servers = VirtualServers(spec, self.domains, START)
        self._domain_keys = np.empty(spec.all_domains, np.uint64)
        for start in range(0, spec.all_domains, _BLOCK):
            some = np.arange(start, min(start + _BLOCK, spec.all_domains), dtype=np.int64)
            self._domain_keys[some] = texts.domain_keys(some)

    def __repr__(self) -> str:
        return f"VirtualWeb({self.domains!r})"

    @property
    def nbytes(self) -> int:
        """Bytes of memory that grow with the number of domains."""
        return self.domains.nbytes + self._domain_keys.nbytes

    def seeds(self, count: int) -> pa.RecordBatch:
        """Return the home pages of the `count` most popular domains as a `URLS` batch."""
        domain = np.arange(min(count, self.spec.domains), dtype=np.int64)
        return self._batch(PageNumbers(domain, np.zeros_like(domain)), 0, 0, Kind.SEED)

    def links_of(self, text: Text, depth: I64) -> DrawnLinks:
        """Return all links of the pages with these URLs and depths."""
        domain, _, page = texts.read(text)
        rows, targets = self._links.targets(PageNumbers(domain, page))
        count = self.spec.links_per_page
        via = np.repeat(texts.keys(text)[rows], count)
        deeper = np.repeat(np.minimum(depth[rows] + 1, 0xFFFF).astype(np.uint16), count)
        flat = PageNumbers(targets.domain.ravel(), targets.page.ravel())
        sources = np.repeat(self._domain_keys[domain[rows]], count)
        return DrawnLinks(self._batch(flat, via, deeper, Kind.PAGE), sources, self.domains.is_spam(flat.domain))

    def answers(self, text: Text, now: float) -> ServerAnswers:
        """Return the answers to visits to these URLs that begin at `now`."""
        domain, host, page = texts.read(text)
        return self._servers.answers(PageNumbers(domain, page), host, now)

    def addresses(self, text: Text) -> I64:
        """Return a number for each URL's address: int64[n]."""
        domain, host, _ = texts.read(text)
        return self._servers.addresses(domain, host)

    def _batch(self, pages: PageNumbers, via: Numbers, depth: Numbers, kind: Kind) -> pa.RecordBatch:
        """Return a `URLS` batch of n `pages`; columns that a link cannot know are zero."""
        text = texts.written(pages.domain, self.domains.host_of(*pages), pages.page)
        known: dict[str, Numbers] = {
            "key": texts.keys(text),
            "host": texts.host_keys(text),
            "domain": self._domain_keys[pages.domain],
            "via": via,
            "depth": depth,
            "kind": int(kind),
        }
        columns = [
            texts.binary(text) if field.name == "url" else _column(known.get(field.name, 0), field, len(text))
            for field in URLS
        ]
        return pa.RecordBatch.from_arrays(columns, schema=URLS)


def _column(values: Numbers, field: pa.Field, count: int) -> pa.Array:
    dtype = field.type.to_pandas_dtype()
    whole = values if isinstance(values, np.ndarray) else np.full(count, values, dtype)
    return pa.array(whole.astype(dtype, copy=False))
