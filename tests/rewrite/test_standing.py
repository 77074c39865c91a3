"""Of several hosts, those that a person named come first, then those that more domains link to."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.archive.asked import AskedLater
from fyke.archive.directory import CrawlDirectory
from fyke.archive.schemas import DOMAINS
from fyke.archive.summaries import write_domains
from fyke.core.config import Config, CrawlSection
from fyke.rewrite.standing import by_standing

DOMAIN = [f"{letter}.example" for letter in "abcdefg"]


def crawl(folder: Path, typed: list[str], listed: list[str], asked: list[str], linked: dict[str, int]) -> None:
    """A crawl with seeds that were typed, in a list, and asked for while it ran, and domains with in-degrees."""
    directory = CrawlDirectory(folder)
    config = Config(crawl=CrawlSection(seeds=typed))
    directory.prepare(config)
    with directory.recorded(config, [f"http://{host}/" for host in listed] if listed else None):
        directory.state.mkdir(exist_ok=True)
        AskedLater(directory.state).add_seeds(f"http://{host}/" for host in asked)
        if linked:
            rows = [
                {name: row.get(name, 0) for name in DOMAINS.names}
                for row in ({"domain": domain, "in_degree": degree} for domain, degree in linked.items())
            ]
            write_domains(folder, pa.Table.from_pylist(rows, DOMAINS).to_batches())


@given(
    st.dictionaries(st.sampled_from(DOMAIN), st.integers(0, 3)),
    st.lists(st.sampled_from(DOMAIN), max_size=4),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_they_are_in_order(linked: dict[str, int], named: list[str], data: st.DataObject) -> None:
    """A seed may be typed, in a list or asked for later, and name its site with `www.`. A crawl that never stopped has
    counted no links."""
    kinds = [data.draw(st.sampled_from(["typed", "listed", "asked"])) for _ in named]
    seeds = [data.draw(st.sampled_from([name, f"www.{name}"])) for name in named]
    of = {
        kind: [seed for seed, its in zip(seeds, kinds, strict=True) if its == kind]
        for kind in ("typed", "listed", "asked")
    }
    hosts = [prefix + domain for domain in DOMAIN for prefix in ("", "www.", "mirror.")]
    with TemporaryDirectory() as place:
        crawl(Path(place) / "crawl", of["typed"], of["listed"], of["asked"], linked)
        found = by_standing(Path(place) / "crawl", data.draw(st.permutations(hosts)))
    assert sorted(found) == sorted(hosts)
    for one, other in pairwise(found):
        ours, theirs = (host.removeprefix("www.").removeprefix("mirror.") for host in (one, other))
        is_named = [host.removeprefix("www.") in named for host in (one, other)]
        assert is_named[0] >= is_named[1]
        if is_named[0] == is_named[1]:
            assert linked.get(ours, 0) >= linked.get(theirs, 0)
            if linked.get(ours, 0) == linked.get(theirs, 0):
                assert (one.startswith("www."), one) < (other.startswith("www."), other)
