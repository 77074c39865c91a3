"""How often is a page fetched that a site shows under many URLs? Without rules, and with rules learned from that
crawl.

    .venv/bin/python benches/rewriting.py [SITE ...]

Each site is crawled, `fyke rewrite` learns, and it is crawled again with the rules, by the ordinary commands. *Times*
is requests per distinct page. `library` and `auction` were held back from the first learner. `station`, whose pages
change at every request beside their text, and `clock`, where the text itself changes, were held back from the second.
`fair` was first run when that was done.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from usage import arguments

from fyke.core.rewrite_rules import load
from fyke.lab.simweb.dust import Dust, PageView, Session
from fyke.lab.simweb.dust_server import DustWeb, dust_web

SITES = {
    "library": Dust(
        seed=11, host="library.sim", aliases=("www.library.sim", "mobile.library.sim"), articles=120, folders=40,
        things=120, session=Session("segment", before="session_"), sessions=1, links_per_page=5,
        ignored=(("from", ("home", "search", "mail", "map")), ("printable", ("yes",)), ("ver", ("1", "2"))),
        index="welcome.htm", matter=("book", "page", "edition"), usual=("view", "text", "scan"), changing_share=0.004,
    ),
    "auction": Dust(
        seed=12, host="www.auction.sim", aliases=("auction.sim",), articles=20, folders=15, things=400,
        session=Session("parameter", "tok"), sessions=2, links_per_page=4, shuffled=True,
        ignored=(("fbclid", tuple(f"IwAR{n * 104729:09d}abc" for n in range(25))), ("src", ("a", "b", "c"))),
        index="home.php", matter=("lot", "bid"), missing=80,
    ),
    "station": Dust(
        seed=21, host="station.sim", aliases=("www.station.sim",), articles=150, folders=40, things=80,
        links_per_page=4, ignored=(("utm_medium", ("a", "b", "c")), ("print", ("1",))), index="index.html",
        matter=("train", "day"), noise=("token", "advert", "menu"), changing_share=0.01,
    ),
    "clock": Dust(
        seed=22, host="clock.sim", aliases=("www.clock.sim",), articles=150, folders=40, things=80, links_per_page=4,
        ignored=(("utm_medium", ("a", "b", "c")), ("print", ("1",))), index="index.html", noise=("clock",),
    ),
    "paper": Dust(
        seed=41, host="paper.sim", aliases=("www.paper.sim",), articles=150, folders=20, things=80, links_per_page=7,
        ignored=(("ref", ("top", "side")), ("utm_term", ("a", "b"))), matter=("day", "part"), noise=("clock",),
        views=(PageView("first", "print"), PageView("last", "amp"), PageView("query", "plain")),
    ),
    "fair": Dust(
        seed=31, host="www.fair.sim", aliases=("m.fair.sim", "fair.sim"), articles=90, folders=50, things=200,
        links_per_page=5, session=Session("parameter", "zid"), sessions=2, shuffled=True, noise=("advert", "token"),
        changing_share=0.006,
        ignored=(("campaign", ("spring", "autumn")), ("back", ("list", "map", "start")), ("mode", ("plain",))),
        index="default.htm", matter=("hall", "stand", "row"), usual=("tongue", "en", "fr"), missing=50,
    ),
}  # fmt: skip


def crawled(web: DustWeb, folder: Path, *options: str) -> dict[str, object]:
    """Crawl the site into `folder` and return the summary."""
    settings = folder.with_suffix(".toml")
    settings.write_text(
        "[politeness]\nhost_delay_s = 0.0\naddress_delay_s = 0.0\nmin_host_delay_s = 0.0\nmin_address_delay_s = 0.0\n"
        'delay_factor = 0.0\n[frontier]\ntrap_pages = 0\n[crawl]\nscope = "domain"\n[dns]\nprivate = ["sim"]\n'
        f'servers = ["{web.dns}"]\n'
    )
    web.asked.clear()
    command = [sys.executable, "-m", "fyke", "crawl", web.seed, "--into", str(folder), "--config", str(settings)]
    done = subprocess.run([*command, "--json", *options], capture_output=True, text=True, check=True)
    told: dict[str, object] = json.loads(done.stdout)
    return told


def main() -> None:
    (sites,) = arguments(__doc__, site=[*SITES])
    print("site      pages | times without rules | with them | rules | revoked | pages missed")
    for name in sites:
        with tempfile.TemporaryDirectory() as folder, dust_web(SITES[name]) as web:
            plain, again = Path(folder) / "plain", Path(folder) / "again"
            crawled(web, plain)
            before, pages = sum(web.fetched.values()), len(web.fetched)
            subprocess.run([sys.executable, "-m", "fyke", "rewrite", str(plain)], stdout=subprocess.DEVNULL, check=True)
            rules = plain / "rewrite.toml"
            told = crawled(web, again, "--rewrite", str(rules))
            times = sum(web.fetched.values()) / pages
            revoked = ", ".join(told["revoked"]) if isinstance(told["revoked"], dict) and told["revoked"] else "none"
            print(
                f"{name:<9} {pages:>5} | {before / pages:>19.2f} | {times:>9.2f} | {len(load(rules)):>5} | {revoked}"
                f" | {len(web.missed)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
