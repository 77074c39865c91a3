"""How much of a crawl goes into traps? Endless sites of several kinds beside 50 honest ones.

    .venv/bin/python benches/traps.py [KIND ...] [--pages N] [--held-back] [--later] [--archive PAGES]

All kinds at once, with the guard and without, then the fetches that each kind wasted. *real* is the share of fetches
that brought a real page for the first time, until 99 in 100 real ones had come. The figure after it is the share of
all real pages that came in the first fetches, a quarter more than there are real pages.

`--held-back` plays the kinds that the guard was not made by, `--later` those that were added later, with honest sites
among them. `--archive` instead shows the guard PAGES numbered pages of one honest host, without a network, and says
how many would have waited.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fyke.core.batches import url_batch
from fyke.core.config import FrontierSection
from fyke.core.messages import judged_batch
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.urls import locate
from fyke.core.visits import Exchange, visits_of
from fyke.disk.checkpoint import Checkpoint
from fyke.frontier.traps.waiting import Traps
from fyke.harvest.new_text import NewText
from fyke.lab.simweb.hostile import endless
from fyke.lab.simweb.hostile.judge import GENTLE, judged
from fyke.lab.simweb.hostile.servers import Cast

HONEST = 50


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="which; without any, all that are not held back")
    parser.add_argument("--pages", type=int, default=12_000, help="pages to fetch, at most")
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument("--archive", type=int, default=0, metavar="PAGES")
    parser.add_argument("--later", action="store_true")
    options = parser.parse_args()
    if options.archive:
        waited, pages = archive(options.archive)
        print(f"{waited} of {pages} pages of an honest archive would have waited")
        return
    chosen = options.kinds or (endless.LATER if options.later else [])
    kinds = chosen or [kind for kind in endless.TRAPS if (kind in endless.HELD_BACK) == options.held_back]
    print(f"{len(kinds)} kinds of traps beside {HONEST} honest hosts: {', '.join(kinds)}")
    for after in (0, FrontierSection().trap_pages):
        _report(kinds, after, options.pages)


def _report(kinds: list[str], after: int, pages: int) -> None:
    settings = {**GENTLE, "frontier": {"trap_pages": after, "probes": True}}
    cast = Cast(endless_kinds=kinds, honest=HONEST)
    with tempfile.TemporaryDirectory() as folder:
        done = judged(cast, Path(folder), settings, options=["--pages", str(pages)], patience_s=300, ask=None)
    fetches = [(host, path) for _, host, path in done.ledger if endless.kind_of(host) and path != "/robots.txt"]
    reals = list(_reals(fetches))
    total = sum(map(endless.real_pages, kinds)) + HONEST * endless.real_pages("honest")
    met, wasted = 0, Counter[str]()
    until = 0
    for number, ((host, _), real) in enumerate(zip(fetches, reals, strict=True), 1):
        met += real
        wasted[endless.kind_of(host)] += not real
        if met >= 0.99 * total:
            until = number
            break
    budget = total * 5 // 4
    share = met / until if until else met / max(1, len(fetches))
    said = f"the first {until} fetches brought 99 %" if until else f"{len(fetches)} fetches did not bring 99 %"
    print(f"\n{f'guard after {after} pages' if after else 'without a guard'}: {said} of {total} real pages")
    print(f"  real {share:.1%}; of the first {budget} fetches {sum(reals[:budget]) / total:.1%} of all real pages came")
    print(f"  all fetches {len(fetches)}: {sum(reals)} real; {done.cpu_s:.1f} s of CPU, {done.peak_mb:.0f} MB")
    print("  not real, until then:", ", ".join(f"{kind} {count}" for kind, count in wasted.most_common() if count))


def _reals(fetches: list[tuple[str, str]]) -> Iterator[bool]:
    """Yield whether each fetch brought a real page for the first time."""
    met = {""}
    for host, path in fetches:
        real = endless.answer(host, path).real
        yield real not in met
        met.add(real)


def archive(pages: int) -> tuple[int, int]:
    """Return how many numbered pages of one host, with captions of ten words, a guard lets wait, and the number of
    pages."""
    waited = 0
    with tempfile.TemporaryDirectory() as folder, Checkpoint(Path(folder)) as checkpoint:
        traps, new_text = Traps(checkpoint.store, FrontierSection().trap_pages), NewText()
        for begin in range(0, pages, 256):
            paths = [f"/photo/{number}" for number in range(begin, min(begin + 256, pages))]
            urls = url_batch([locate(f"http://honest-3.hostile{path}") for path in paths])
            waited += urls.num_rows - traps.divert(urls).num_rows
            judged_pages = []
            for visit, path in zip(visits_of(urls), paths, strict=True):
                content = endless.html(endless.answer("honest-3.hostile", path), "honest-3.hostile").encode()
                fresh = new_text.fresh(Page(Exchange(visit, Outcome.OK, 0.0, 0.0), "text/html", content))
                judged_pages += [] if fresh is None else [(visit, fresh)]
            traps.learn(judged_batch(judged_pages))
        traps.close()
    return waited, pages


if __name__ == "__main__":
    main()
