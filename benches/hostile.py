"""What does Fyke do with each behaviour of the web at its worst, or what do other sites lose beside it? As a table.

    .venv/bin/python benches/hostile.py [BEHAVIOUR]... [--beside [--mix NAME]... [--rest S] [--rounds N]] [--list]

Without names all behaviours are played, one crawl each. With `--beside` 50 normal sites are crawled alone, and then
beside `--hosts` hosts of each named behaviour. The bench reports when their last page came, and the crawler's CPU by
then. `--mix` plays behaviours that belong together (`MIXES`). Each host rests for `--rest` seconds after a page. With
and without take turns, `--rounds` times; the medians are compared.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from fyke.lab.simweb.hostile.judge import GENTLE, HASTE, Judged, ended, judged, running
from fyke.lab.simweb.hostile.servers import BEHAVIOURS, Cast

MOST_S = 30.0
NORMAL_HOSTS, NORMAL_PAGES = 50, 101
MIXES: dict[str, tuple[list[str], int, int]] = {  # behaviours, hosts of each, pages of each host
    "sleepers": (["rests-for-an-hour"], 40, 600),
    "silent-names": (["name-silent"], 2000, 1),
    "failing-names": (["name-fails"], 2000, 1),
    "delay": (["all-is-slow"], 600, 1),
    "all": ([*BEHAVIOURS], 1, 1),
    "crowd": (["throttles", "rules-slow", "name-fails", "slow-body", "rests-for-a-day"], 60, 20),
    "heavy-pages": (["page-of-8-mb", "feed-of-60-mb"], 12, 60),
    "heavy-crowd": (["body-of-30-mb", "page-of-8-mb", "sitemap-of-50-mb", "feed-of-60-mb"], 12, 3),
    "hoarders": (["brings-much-and-waits"], 700, 1),
    "long-ways": (
        [
            "leads-on-by-long-urls",
            "head-of-300-kb",
            "rules-of-500-kb",
            "text-of-60-mb-and-a-smile",
            "json-feed-of-objects",
        ],
        40,
        3,
    ),
    "threshold": (["page-just-below-large"], 40, 5),
    "wanderers": (["leads-to-new-hosts"], 40, 3),
    "held-back": (["closes-at-once", "name-malformed", "rules-resting", "delay-of-a-day", "never-closes"], 80, 15),
}


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="BEHAVIOUR", help="which; without any, all")
    parser.add_argument("--beside", action="store_true", help="measure what normal sites lose beside these")
    parser.add_argument("--hosts", type=int, default=40, help="hosts of each, with --beside")
    parser.add_argument("--pages", type=int, default=1, help="pages of each host, with --beside")
    parser.add_argument("--mix", choices=MIXES, nargs="+", default=[], help="with --beside: what belongs together")
    parser.add_argument("--rounds", type=int, default=1, help="how often, with --beside")
    parser.add_argument("--rest", type=float, default=0.0, help="seconds that each host rests, with --beside")
    parser.add_argument("--scrapy", metavar="PYTHON", help="also play them to the Scrapy that this Python has")
    parser.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args()
    names = options.names or list(BEHAVIOURS)
    if options.list:
        print(*names, sep="\n")
    elif options.beside:
        together = [names] if len(names) > 5 else [[name] for name in names]
        mixes = {name: MIXES[name] for name in options.mix}
        if not mixes:
            mixes = {" ".join(chosen): (chosen, options.hosts, options.pages) for chosen in together}
        _beside(mixes, options.rounds, options.rest)
    else:
        _table(names, options.scrapy)


def _table(names: list[str], python: str | None) -> None:
    print(f"{'behaviour':<34}{'CPU s':>7}{'peak MB':>9}{'asked':>7}  what became of it")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            done = judged(Cast([name]), Path(folder), HASTE, options=["--for", f"{MOST_S}s"], patience_s=4 * MOST_S)
        asked = sum(1 for _, host, _ in done.ledger if not host.startswith("start"))
        failed = f" [status {done.status}: {done.complaint}]" if done.status else ""
        print(
            f"{name:<34}{done.cpu_s:>7.1f}{done.peak_mb:>9.0f}{asked:>7}  {done.verdicts[name][:90]}{failed}",
            flush=True,
        )
        if python:
            with tempfile.TemporaryDirectory() as folder:
                print(f"{'  Scrapy':<34}{_scrapy(python, Cast([name]), Path(folder), MOST_S)}", flush=True)


def _scrapy(python: str, cast: Cast, folder: Path, seconds: float) -> str:
    """Return the result and the cost of Scrapy (of `python`) on the first behaviour of `cast`."""
    with running(cast) as servers:
        command = [
            python,
            str(Path(__file__).parent / "peers" / "scrapy_hostile.py"),
            servers.seed,
            servers.dns,
            str(seconds),
        ]
        with (folder / "out").open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
            status, usage, peak_kb, _ = ended(process, time.monotonic() + 4 * seconds)
        said = (folder / "out").read_text()
        became = json.loads(said) if said.startswith("{") else {}
        word = became.get(next(iter(servers.urls.values())), "nothing is said of it")
        failed = f" [ended with {status}]" if status else ""
        return f"{word}{failed}, {usage.ru_utime + usage.ru_stime:.1f} s, {peak_kb / 1024:.0f} MB"


def _beside(mixes: dict[str, tuple[list[str], int, int]], rounds: int, rest_s: float) -> None:
    rests = {**GENTLE["politeness"], "host_delay_s": rest_s, "min_host_delay_s": rest_s}
    settings = {**GENTLE, "politeness": rests}
    casts = {"alone": Cast([], 0, 0, NORMAL_HOSTS, NORMAL_PAGES)}
    for name, (behaviours, hosts, pages) in mixes.items():
        casts[name] = Cast(behaviours, hosts, pages, NORMAL_HOSTS, NORMAL_PAGES)
    most_s = 15 + 2 * rest_s * NORMAL_PAGES
    seen: dict[str, list[Judged]] = {name: [] for name in casts}
    for _ in range(rounds):
        for name, cast in casts.items():
            with tempfile.TemporaryDirectory() as folder:
                options = ["--for", f"{most_s:.0f}s"]
                patience_s = 200 + most_s
                done = judged(
                    cast, Path(folder), settings, options=options, patience_s=patience_s, ask=None, apart=True
                )
            seen[name].append(done)
            print(f"{name[:40]:<40} {_last_normal(done)}", flush=True)
    alone = [_middles(seen["alone"])[which] for which in (0, 1)]
    for name, found in seen.items():
        last_s, cpu_s = _middles(found)
        ratios = f"{last_s / alone[0]:.2f} of its time, {cpu_s / alone[1]:.2f} of its CPU"
        print(f"{name[:40]:<40} last normal page after {last_s:.2f} s, {cpu_s:.2f} s of CPU: {ratios}", flush=True)


def _middles(found: list[Judged]) -> tuple[float, float]:
    return median(done.last_normal_s for done in found), median(done.cpu_to_last_normal_s for done in found)


def _last_normal(done: Judged) -> str:
    pages = len({url for _, url in done.normal if not url.endswith("robots.txt")})
    when = f"the last after {done.last_normal_s:.1f} s and {done.cpu_to_last_normal_s:.1f} s of CPU"
    failed = f" [status {done.status}: {done.complaint}]" if done.status else ""
    return f"{pages} pages, {when}; {done.cpu_s:.1f} s of CPU in all, {done.peak_mb:.0f} MB{failed}"


if __name__ == "__main__":
    main()
