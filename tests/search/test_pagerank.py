"""PageRank against its definition, solved as a dense system; the same whatever memory there is."""

from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.archive.check import check_archive
from fyke.archive.reading import read_table
from fyke.core.batches import LinkKind
from fyke.core.outcomes import Outcome
from fyke.core.urls import key_of, pay_level_domain
from fyke.search.graph import Graph, GraphBuilder
from fyke.search.indexer import IndexLimits
from fyke.search.pagerank import DAMPING, pagerank
from search.archives import SMALL, Answer, Archive, archive, html, indexed
from search.webs import history

Links = list[tuple[int, int]]
LINKS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=60)


def spread(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Numbers as keys all over the range."""
    return numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def dense(nodes: int, links: set[tuple[int, int]]) -> npt.NDArray[np.float64]:
    """The ranks as the solution of their equations."""
    follow = np.zeros((nodes, nodes))
    for source, target in links:
        follow[target, source] = 1
    out = follow.sum(axis=0)
    follow = np.where(out > 0, follow / np.maximum(out, 1), 1 / nodes)
    return np.linalg.solve(np.eye(nodes) - DAMPING * follow, np.full(nodes, (1 - DAMPING) / nodes))


def built(folder: Path, links: Links, memory_bytes: int) -> Graph:
    builder = GraphBuilder(folder, "test", len(links), memory_bytes)
    ends = spread(np.array(links, np.int64).reshape(-1, 2))
    for part in np.array_split(ends, 3):
        builder.add_nodes(part.reshape(-1), np.zeros(2 * len(part), np.uint64))
        builder.add_links(part[:, 0], part[:, 1])
    return builder.build()


@settings(max_examples=60, deadline=None)
@given(links=LINKS)
def test_exact(tmp_path_factory: pytest.TempPathFactory, links: Links) -> None:
    folder = tmp_path_factory.mktemp("graph")
    keys = np.unique(spread(np.array(links, np.int64)))
    place = {int(key): at for at, key in enumerate(keys)}
    wanted = {tuple(place[int(key)] for key in spread(np.array(link))) for link in links if link[0] != link[1]}
    ranks = []
    for memory_bytes in (1 << 20, 1000, 1):
        graph = built(folder, links, memory_bytes)
        assert graph.links == len(wanted)
        ranks.append(np.array(pagerank(graph, folder, memory_bytes)))
        assert graph.nodes == len(keys) == len(ranks[-1])
    if links:
        np.testing.assert_allclose(ranks[0], dense(len(keys), wanted), rtol=0, atol=1e-6)
        assert ranks[0].sum() == pytest.approx(1)
    for other in ranks[1:]:
        np.testing.assert_array_equal(ranks[0], other)


def ranked(folder: Path, name: str, key: str) -> dict[str | int, float]:
    table = pq.read_table(folder / "tables" / f"{name}.parquet").to_pydict()
    return dict(zip(table[key], table["pagerank"], strict=True))


def test_of_a_crawl(tmp_path: Path) -> None:
    folder = archive(tmp_path / "crawl", history(11, 120))
    indexed(folder, SMALL)
    pages = {row["key"]: row["url"] for row in read_table(folder, "pages", ["key", "url"]).to_pylist()}
    links = read_table(folder, "links").to_pylist()
    urls = pages | {row["target"]: row["target_url"] for row in links}
    edges = {(r["source"], r["target"]) for r in links if r["kind"] in (LinkKind.PAGE, LinkKind.REDIRECT)}
    assert_ranks(ranked(folder, "pagerank", "key"), set(pages) | {target for _, target in edges}, edges)
    domain = {key: pay_level_domain(urlsplit(url).hostname or "") for key, url in urls.items()}
    between = {(domain[source], domain[target]) for source, target in edges}
    nodes = {name for edge in between if edge[0] != edge[1] for name in edge}
    assert_ranks(ranked(folder, "domainrank", "domain"), nodes, between)
    assert not list(check_archive(folder, once=False))


def assert_ranks(found: dict, nodes: set, edges: set) -> None:
    """`found` are the ranks of the graph."""
    order = sorted(nodes, key=lambda node: node if isinstance(node, int) else key_of(node))
    place = {node: at for at, node in enumerate(order)}
    wanted = dense(len(order), {(place[a], place[b]) for a, b in edges if a != b})
    assert list(found) == order
    np.testing.assert_allclose(list(found.values()), wanted, rtol=0, atol=1e-6)


def test_a_copy_passes_on_what_links_give_it(tmp_path: Path) -> None:
    """It is ranked as a redirect to the page that it repeats, at its own domain."""
    start, copied, copy = (f"http://a.example/{name}" for name in ("", "page", "copy"))
    page = html("Plums", links={f"http://a.example/{n}": "more" for n in range(3)})
    found = []
    for name, answer, outcome in (
        ("copy", page, None),
        ("moved", Answer("", 301, {"Location": copied}), Outcome.REDIRECTED),
    ):
        made = Archive(tmp_path / name)
        made.visit("http://b.example/page", page)
        made.visit(start, html("Start", links={copied: "page", copy: "copy"}))
        made.visit(copied, page)
        made.visit(copy, answer, outcome, duplicate=outcome is None)
        made.close()
        indexed(made.folder, SMALL)
        found.append(ranked(made.folder, "pagerank", "key"))
    assert found[0] == pytest.approx(found[1])


def test_same_bytes_whatever_the_memory(tmp_path: Path) -> None:
    visits = history(4, 100)
    for name, limits in (("small", SMALL), ("large", IndexLimits())):
        indexed(archive(tmp_path / name, visits), limits)
    for table in ("pagerank", "domainrank"):
        small, large = (pq.read_table(tmp_path / name / "tables" / f"{table}.parquet") for name in ("small", "large"))
        times = ["compression"] if table == "domainrank" else []  # records hold the times of two crawls
        assert small.drop_columns(times).equals(large.drop_columns(times))
