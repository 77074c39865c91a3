"""Which pages and which domains do others point at? Link analysis of a crawl.

Called by the indexer when links have come. It reads the tables `links` and `pages`, ranks the graph of pages and the
graph of domains, and writes the ranks twice: for people as `DIR/tables/pagerank.parquet` (key, pagerank) and
`domainrank.parquet`, and for merges as files of `fyke.search.ranks`. `domainrank.parquet` also has what is unusual
about a domain (`fyke.search.domain_signals`).

A link to a page or a redirect counts once, however often it is there; links to what a page needs and links that say
nofollow do not count. A copy was not read, so it has no links; it leads to the page of its domain that it repeats, as a
redirect does. Links between any pages of two domains count once. Invariant: the ranks depend on the set of
links alone; `memory_bytes` bounds what is in memory, not the result.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fyke.archive.arrivals import arrivals
from fyke.archive.checksum import write_checksum
from fyke.archive.table_files import TABLES, parquet_writer
from fyke.core.batches import NO_KEYS, U64, LinkKind
from fyke.core.mixing import mixed
from fyke.core.urls import key_of, pay_level_domain
from fyke.disk.files import sync_file, writing, written_whole
from fyke.disk.ranges import Buckets, append, ranges_for
from fyke.search.domain_signals import PAGE_COLUMNS, ContentSums, reasons
from fyke.search.folder import IndexFolder
from fyke.search.graph import Graph, GraphBuilder
from fyke.search.key_names import NameStore
from fyke.search.pagerank import pagerank
from fyke.search.ranks import rank_files
from fyke.search.supporters import SUPPORTERS, supporters

PAGE_RANKS = pa.schema([("key", pa.uint64()), ("pagerank", pa.float64())])
DOMAIN_RANKS = pa.schema(
    [
        ("domain", pa.string()), ("key", pa.uint64()), ("pagerank", pa.float64()),
        *((name, pa.from_numpy_dtype(SUPPORTERS[name])) for name in SUPPORTERS.names or ()),
        ("pages", pa.uint32()), ("compression", pa.float32()), ("links_per_page", pa.float32()),
        ("copies", pa.float32()), ("reasons", pa.string()),
    ]
)  # fmt: skip
GROUP_ROWS = 1 << 16

_BODY = np.dtype([("body", "<u8"), ("copy", "?"), ("key", "<u8")])  # body: of its bytes and of the domain

_HOST = r"^[a-z][a-z0-9+.-]*://(?P<host>\[[^\]]*\]|[^/:?#]+)"
_COUNTED = pa.array([LinkKind.PAGE, LinkKind.REDIRECT], pa.uint8())

Floats = npt.NDArray[np.float64]


def rank_links(folder: IndexFolder, number: int, rows: tuple[int, int], memory_bytes: int) -> None:
    """Rank the first `rows` (of links, of pages) and write ranking `number`. Raises DiskFull, DirectoryError."""
    links, pages = rows
    scratch = folder.scratch()
    names = NameStore(scratch)
    of_pages = GraphBuilder(scratch, "pages", links + pages, memory_bytes)
    of_domains = GraphBuilder(scratch, "domains", links, memory_bytes)
    contents = ContentSums(scratch, pages)
    bodies = Buckets(scratch, "bodies", _BODY, ranges_for(pages))
    for batch, domains in _pages(folder.crawl, pages, names):
        of_pages.add_nodes(batch.column("key").to_numpy(), domains)
        contents.add(batch, domains)
        some = _bodies(batch, domains)
        bodies.add(some["body"].copy(), some)
    contents.settle()
    for some in bodies:
        of_pages.add_links(*_copies(some))
    bodies.close()
    for sources, targets, domains in _links(folder.crawl, links, names):
        of_pages.add_nodes(targets, domains)
        of_pages.add_links(sources, targets)

    def between(sources: U64, targets: U64) -> None:
        for keys in (sources, targets):
            of_domains.add_nodes(keys, np.zeros_like(keys))
        of_domains.add_links(sources, targets)

    graph = of_pages.build(between)
    _write(folder, number, "pages", graph, pagerank(graph, scratch, memory_bytes), None)
    graph = of_domains.build()
    ranks = pagerank(graph, scratch, memory_bytes)
    signals = DomainSignals(names, supporters(graph, scratch, memory_bytes), contents, contents.usual())
    _write(folder, number, "domains", graph, ranks, signals)
    sync_file(folder.path)


class DomainSignals(NamedTuple):
    """Facts of domains that are written beside their ranks."""

    names: NameStore
    supporters: npt.NDArray[Any]  # dtype `SUPPORTERS`, [nodes]
    contents: ContentSums
    usual: dict[str, tuple[float, float]]

    def columns(self, keys: U64, begin: int) -> dict[str, Any]:
        """Return the columns for `keys` (uint64[n]), the domains of the nodes from `begin` on."""
        support, content = self.supporters[begin : begin + len(keys)], self.contents.of(keys)
        told = reasons(support, content, self.usual)
        numbers = {name: part[name] for part in (support, content) for name in part.dtype.names or ()}
        return {"domain": self.names.of(keys), **numbers, "reasons": told}


def _pages(crawl: Path, rows: int, names: NameStore) -> Iterator[tuple[pa.RecordBatch, U64]]:
    """Yield pages, and the keys of their domains."""
    for batch in arrivals(crawl, "pages", ["key", "domain", "fingerprint", *PAGE_COLUMNS], 0, rows):
        yield batch, _keys(batch.column("domain").dictionary_encode(), names)


def _bodies(batch: pa.RecordBatch, domains: U64) -> npt.NDArray[np.void]:
    """Return _BODY of the pages that have one."""
    fingerprints = batch.column("fingerprint").to_numpy()
    rows = np.empty(len(fingerprints), _BODY)
    rows["body"] = mixed(fingerprints + mixed(domains))
    rows["copy"] = batch.column("duplicate").to_numpy(zero_copy_only=False)
    rows["key"] = batch.column("key").to_numpy()
    bodies: npt.NDArray[np.void] = rows[fingerprints != 0]
    return bodies


def _copies(rows: npt.NDArray[np.void]) -> tuple[U64, U64]:
    """Return the copies among `rows` (_BODY), and the page that each repeats."""
    rows = np.sort(rows)
    first = np.searchsorted(rows["body"], rows["body"])
    copied = rows["copy"] & ~rows["copy"][first]
    return rows["key"][copied], rows["key"][first][copied]


def _links(crawl: Path, rows: int, names: NameStore) -> Iterator[tuple[U64, U64, U64]]:
    """Yield sources, targets, and the domains of the targets, of links that count."""
    for batch in arrivals(crawl, "links", ["source", "target", "target_url", "kind"], 0, rows):
        batch = batch.filter(pc.is_in(batch.column("kind"), _COUNTED))
        targets = batch.column("target").to_numpy()
        _, first, place = np.unique(targets, return_index=True, return_inverse=True)
        urls = batch.column("target_url").take(pa.array(first))
        hosts = pc.struct_field(pc.extract_regex(urls, _HOST), "host").dictionary_encode()
        domains = pa.DictionaryArray.from_arrays(
            hosts.indices, pa.array([pay_level_domain(host) for host in hosts.dictionary.to_pylist()], pa.string())
        )
        yield batch.column("source").to_numpy(), targets, _keys(domains, names)[place]


def _keys(domains: pa.DictionaryArray, names: NameStore) -> U64:
    """Return the key of each domain, and note the names in `names`."""
    known = domains.dictionary.to_pylist()
    keys = np.fromiter(map(key_of, known), np.uint64, len(known))
    names.add(keys, known)
    return keys[domains.indices.to_numpy()] if len(domains) else NO_KEYS


def _write(
    folder: IndexFolder, number: int, what: str, graph: Graph, ranks: Floats, signals: DomainSignals | None
) -> None:
    """Write the ranks of one graph, for merges and for people."""
    paths = rank_files(folder, number, what)
    for path in paths:
        path.unlink(missing_ok=True)
    target = folder.crawl / TABLES / ("pagerank.parquet" if signals is None else "domainrank.parquet")
    keys = np.memmap(graph.keys, np.uint64, "r") if graph.nodes else NO_KEYS
    with written_whole(target, synced=False) as part:
        with parquet_writer(part, PAGE_RANKS if signals is None else DOMAIN_RANKS) as writer:
            for begin in range(0, graph.nodes, GROUP_ROWS):
                end = begin + GROUP_ROWS
                append(paths[0], keys[begin:end])
                append(paths[1], ranks[begin:end] * graph.nodes)
                columns: dict[str, Any] = {"key": keys[begin:end], "pagerank": ranks[begin:end]}
                if signals is not None:
                    columns |= signals.columns(np.asarray(keys[begin:end]), begin)
                rows = {name: columns[name] for name in writer.schema.names}
                writer.write_table(pa.table(rows, schema=writer.schema))
        target.unlink(missing_ok=True)  # with the new checksum the old file would look damaged
        write_checksum(part, target)
    with writing(target):
        for path in paths:
            if path.exists():
                sync_file(path)
