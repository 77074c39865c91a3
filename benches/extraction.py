"""The fields of product pages into PostgreSQL, and again after a changed selector: `python benches/extraction.py`.

A shop of 10,000 product pages of 12 KB on an nginx of this machine, and a PostgreSQL of our own; Scrapy beside it, if
installed (`pip install --group bench`). Prints seconds, and CPU seconds of the program and its children; the database
compares the rows of both. `python benches/extraction.py 1000` is a smaller shop.
"""

import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import adbc_driver_postgresql.dbapi
from usage import arguments

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from crawl.nginx import nginx

ON_A_SHELF = 100
FIELDS = """
[politeness]
host_delay_s = 0
address_delay_s = 0
min_host_delay_s = 0
min_address_delay_s = 0
delay_factor = 0

[[extract]]
table = "products"
match = "/product/"
fields.name = "{selector}"
fields.price = {{ select = "json:Product.offers.price", type = "number" }}
fields.tags = {{ select = ".tag", many = true }}
"""


def build(root: Path, products: int) -> None:
    """Write a page of shelves, shelves of products, and products."""
    chance = Random(1)
    words = ["".join(chance.choices("abcdefghijklmnoprstuvwz", k=chance.randint(3, 9))) for _ in range(4000)]
    (root / "product").mkdir(parents=True)
    shelves = range(0, products, ON_A_SHELF)
    (root / "index.html").write_text("".join(f"<a href=/shelf{first}.html>{first}</a> " for first in shelves))
    for first in shelves:
        numbers = range(first, min(first + ON_A_SHELF, products))
        (root / f"shelf{first}.html").write_text("".join(f"<a href=/product/{n}.html>{n}</a> " for n in numbers))
    for number in range(products):
        data = {"@type": "Product", "offers": {"@type": "Offer", "price": f"{chance.randint(100, 99999) / 100:.2f}"}}
        tags = "".join(f"<li class=tag>{word}</li>" for word in chance.sample(words, 4))
        text = "".join(f"<p>{' '.join(chance.choices(words, k=90))}.</p>" for _ in range(18))
        (root / "product" / f"{number}.html").write_text(
            f"<!doctype html><title>Shop</title><h1>Product {number}</h1><h2>Model {number * 7}</h2><ul>{tags}</ul>"
            f'<script type="application/ld+json">{json.dumps(data)}</script>{text}<a href=/>home</a>'
        )


@contextmanager
def postgres(home: Path) -> Iterator[str]:
    """Run a server at a socket in `home`, as another user than root."""
    binaries = Path(shutil.which("initdb") or next(Path("/usr/lib/postgresql").glob("*/bin/initdb"))).resolve().parent
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(home, "nobody")
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": home, **user}
    subprocess.run([binaries / "initdb", "-D", home / "data", "-A", "trust", "-U", "fyke", "-E", "UTF8"], **quiet)
    control = [binaries / "pg_ctl", "-D", home / "data", "-w", "-l", home / "log"]
    subprocess.run([*control, "-o", f"-k {home} -c listen_addresses=''", "start"], **quiet)
    try:
        yield f"postgresql:///postgres?host={home}&user=fyke"
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], **quiet)


def timed(what: str, *commands: Sequence[str]) -> None:
    """Run `commands` and print their times."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{what}: {done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"{what:44} {time.monotonic() - began:7.1f} s {cpu_s:7.1f} s of processor", flush=True)


def rows(address: str, question: str) -> list[Any]:
    with adbc_driver_postgresql.dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(question)
        return list(cursor.fetchall())


def main(products: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        for name in ("web", "pg"):
            (folder / name).mkdir()
        build(folder / "web", products)
        for selector in ("h1", "h2"):
            (folder / f"{selector}.toml").write_text(FIELDS.format(selector=selector))
        with nginx(folder / "web") as url, postgres(folder / "pg") as address:
            fyke, there = [sys.executable, "-m", "fyke"], str(folder / "there")
            crawling = [*fyke, "crawl", url, "--into", there, "--config", str(folder / "h1.toml")]
            extracting = [*fyke, "extract", there, "--to", address, "--config"]
            timed("Fyke: crawl, and into the database", crawling, [*extracting, str(folder / "h1.toml")])
            timed("Fyke: a selector changed", [*extracting, str(folder / "h2.toml")])
            if importlib.util.find_spec("scrapy") is None:
                return
            spider = [sys.executable, str(Path(__file__).parent / "peers" / "scrapy_fields.py"), url]
            cache = str(folder / "cache")
            timed("Scrapy: crawl, and into the database", [*spider, cache, address, "h1"])
            timed("Scrapy: a selector changed, from its cache", [*spider, cache, address, "h2"])
            same = "select count(*) from products join scrapy_products using (url, name, price, tags)"
            print(
                "rows, and those that are the same:",
                rows(address, "select count(*) from products"),
                rows(address, same),
            )


if __name__ == "__main__":
    main(*arguments(__doc__, products=10_000))
