"""What has become of a page is the difference of what it was and what it is, however often it changed between."""

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from export.crawls import lines
from fyke.export import Format, export
from fyke.export.changes import ROW, Change, of_pages
from search.archives import Answer, Archive
from search.webs import history

# (page, what it held, 0: nothing; whether it was found as it was, and whether it then asks not to be indexed)
VISITS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans(), st.booleans()), max_size=30)


@given(visits=VISITS, before=st.integers(0, 30))
def test_a_change_is_between_the_date_and_now(visits: list[tuple[int, int, bool, bool]], before: int) -> None:
    """`before` of the visits are before the date."""
    rows = np.zeros(len(visits), ROW)
    was: dict[int, int] = {}
    now: dict[int, int] = {}
    held: dict[int, int] = {}
    for at, (page, said, again, asks) in enumerate(visits):
        if again:
            rows[at] = (page, at, 0, not asks, at < before, False, 0)
            said = 0 if asks else held.get(page, 0)
        else:
            rows[at] = (page, at, min(said, 2), said > 0, at < before, True, said)  # 2 and 3: in another charset
            held[page] = said
        if page in held:
            now[page] = said
            if at < before:
                was[page] = now[page]
    last, changes = of_pages(np.random.default_rng(1).permutation(rows))
    found = dict(zip(last["key"].tolist(), map(Change, changes.tolist()), strict=True))
    assert found.keys() == now.keys()
    for page, said in now.items():
        old = was.get(page, 0)
        word = Change.NONE if old == said else Change.CHANGED if old and said else Change.NEW if said else Change.GONE
        assert found[page] is word


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 30), first=st.integers(0, 40), then=st.integers(1, 40))
def test_who_applies_the_changes_has_what_an_export_holds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, first: int, then: int
) -> None:
    """Of exact copies both have one, also when the page goes of which others were copies."""
    base = tmp_path_factory.mktemp("changes")
    made, visits = Archive(base / "crawl"), history(seed, first + then)

    def exported(name: str, since: float | None = None) -> list[dict[str, object]]:
        date = None if since is None else datetime.fromtimestamp(since, UTC)
        out = base / f"{name}.jsonl"
        export(
            made.folder,
            Format.JSONL,
            out,
            Console(file=io.StringIO()),
            everything=False,
            since=date,
            changes=since is not None,
        )
        return list(lines(out))

    for url, answer in visits[:first]:
        made.visit(url, answer)
    made.flush()
    kept = {entry["url"]: entry for entry in exported("before")}
    begun = made.now + 0.5
    for url, answer in visits[first:]:
        made.visit(url, answer)
    made.flush()
    for entry in exported("changes", begun):
        if entry.pop("change") == "gone":
            del kept[entry["url"]]
        else:
            kept[entry["url"]] = entry
    now = {entry["url"]: entry for entry in exported("now")}
    made.close()
    assert {url: entry["text"] for url, entry in kept.items()} == {url: entry["text"] for url, entry in now.items()}


@pytest.mark.parametrize("everything", [False, True])
def test_both_forms_agree_on_a_page_that_now_says_noindex(everything: bool, tmp_path: Path) -> None:
    """It is gone, unless such pages are asked for too."""
    made, asks, text = Archive(tmp_path / "crawl"), "<meta name=robots content=noindex>", "<p>Some words to read.</p>"
    made.visit("http://a.example/1", Answer(text))
    since = datetime.fromtimestamp(made.now + 0.5, UTC)
    made.visit("http://a.example/1", Answer(asks + text))
    made.visit("http://a.example/2", Answer(f"{asks}<p>Never to be indexed.</p>"))
    made.close()

    def told(kind: Format, out: Path) -> Path:
        export(made.folder, kind, out, Console(file=io.StringIO()), everything=everything, since=since, changes=True)
        return out

    with told(Format.CSV, tmp_path / "x.csv").open() as file:
        rows = {row["url"]: row["change"] for row in csv.DictReader(file)}
    assert rows == {entry["url"]: entry["change"] for entry in lines(told(Format.JSONL, tmp_path / "x.jsonl"))}
    assert rows["http://a.example/1"] == ("changed" if everything else "gone") and len(rows) == 1 + everything
