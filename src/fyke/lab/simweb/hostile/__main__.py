"""`python -m fyke.lab.simweb.hostile`: what Fyke does with each behaviour, as a table; or what others lose beside it.

Without names all behaviours are played, one crawl each. With `--beside` 50 normal sites are crawled alone, and then
beside so many hosts (`--hosts`) of each behaviour named: when did the last of their pages come?
"""

import argparse
import tempfile
from pathlib import Path

from fyke.lab.simweb.hostile.judge import GENTLE, HASTE, judged, scrapy
from fyke.lab.simweb.hostile.servers import BEHAVIOURS, Cast

MOST_S = 30.0
NORMAL_HOSTS, NORMAL_PAGES = 50, 101


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m fyke.lab.simweb.hostile", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BEHAVIOUR", help="which; without any, all")
    parser.add_argument("--beside", action="store_true", help="measure what normal sites lose beside these")
    parser.add_argument("--hosts", type=int, default=40, help="hosts of each, with --beside")
    parser.add_argument("--pages", type=int, default=1, help="pages of each host, with --beside")
    parser.add_argument("--scrapy", metavar="PYTHON", help="also play them to the Scrapy that this Python has")
    parser.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args()
    names = options.names or list(BEHAVIOURS)
    if options.list:
        print(*names, sep="\n")
    elif options.beside:
        _beside(names, options.hosts, options.pages)
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
                print(f"{'  Scrapy':<34}{scrapy(python, Cast([name]), Path(folder), MOST_S)}", flush=True)


def _beside(names: list[str], hosts: int, pages: int) -> None:
    alone = _last_normal(Cast([], 0, 0, NORMAL_HOSTS, NORMAL_PAGES))
    print(f"{NORMAL_HOSTS * NORMAL_PAGES} pages of {NORMAL_HOSTS} normal hosts alone: {alone}", flush=True)
    together = [names] if len(names) > 5 else [[name] for name in names]
    for chosen in together:
        words = chosen[0] if len(chosen) == 1 else f"{len(chosen)} behaviours"
        beside = _last_normal(Cast(chosen, hosts, pages, NORMAL_HOSTS, NORMAL_PAGES))
        print(f"beside {hosts} hosts of {words}, {pages} pages each: {beside}", flush=True)


def _last_normal(cast: Cast) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = judged(cast, Path(folder), GENTLE, options=["--for", "60s"], patience_s=200, asked_why=False)
    pages = len({url for _, url in done.normal if not url.endswith("robots.txt")})
    when = f"the last after {done.last_normal_s:.1f} s and {done.cpu_to_last_normal_s:.1f} s of CPU"
    return f"{pages} pages, {when}; {done.cpu_s:.1f} s of CPU in all, {done.peak_mb:.0f} MB"


if __name__ == "__main__":
    main()
