"""Memory does not grow with the crawl: peak resident memory with 300,000 URLs discovered and with 3 million.

    .venv/bin/python benches/flat_memory.py [pages of the small crawl] [pages of the large one]

Both crawls are of one synthetic web of millions of pages with some 200 links each, by the ordinary command. Each
stops after the pages that discover about that number of URLs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from usage import arguments

from fyke.lab.simweb import WebSpec, running_web

SETTINGS = """
[politeness]
host_delay_s = 0
address_delay_s = 0
delay_factor = 0
[dns]
servers = ["{dns}"]
private = ["sim"]
"""
LINKS = 200


def web_of(urls: int) -> WebSpec:
    """Return a web with more than `urls` pages."""
    return WebSpec(
        pages=2 * urls, hosts=2000, domains=500, addresses=64, links_per_page=LINKS, mean_page_bytes=15_000,
        branching=60, pages_exponent=0.3,
    )  # fmt: skip


def crawled(web, folder: Path, pages: int) -> dict:
    """Return the summary of a crawl of `pages` pages."""
    config = folder / f"{pages}.toml"
    config.write_text(SETTINGS.format(dns=web.dns))
    command = [sys.executable, "-m", "fyke", "crawl", *web.seeds, "--scope", "web", "--pages", str(pages)]
    command += ["--config", str(config), "--into", str(folder / f"crawl-{pages}"), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def compare(few: int, many: int) -> list[tuple[int, int, float]]:
    """Return (pages, URLs discovered, peak MB) of crawls of `few` and of `many` pages of one web."""
    rows = []
    with tempfile.TemporaryDirectory() as name, running_web(web_of(many * LINKS)) as web:
        for pages in (few, many):
            found = crawled(web, Path(name), pages)
            rows.append((found["pages"], found["urls"] + found["unchecked"], found["peak_memory_bytes"] / 1e6))
    return rows


def main() -> None:
    few, many = arguments(__doc__, few_pages=1700, many_pages=38_000)
    rows = compare(few, many)
    print(f"{'pages':>10} {'URLs':>12} {'peak MB':>8}")
    for pages, urls, peak in rows:
        print(f"{pages:>10,} {urls:>12,} {peak:>8,.0f}")
    print(f"ratio of peaks {rows[1][2] / rows[0][2]:.3f}")


if __name__ == "__main__":
    main()
