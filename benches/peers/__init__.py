"""Who is raced against Fyke, and how each is told to crawl.

Called by `race`. Each gets the settings that make it fast without giving up what it has: no delays, many connections,
robots.txt obeyed where it can. What it does without, compared with Fyke, is said of each, and shown beside its figures.
Programs are looked for on the PATH, and where `peers/build` puts those that it builds.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
PLENTY, SOME, FEW = 1_000_000, 10_000, 2_500


@dataclass(frozen=True, slots=True)
class Course:
    """What a crawler is told of the race."""

    first_page: str
    pages: int
    folder: Path  # empty; what the crawler keeps may go there
    settings: Path  # Fyke's: no delays, where the name server is, whom to trust
    ca: str  # certificates to trust, or ""


@dataclass(frozen=True, slots=True)
class Peer:
    """A crawler."""

    name: str
    command: Callable[[Course], list[str]]  # without the program itself
    lacks: str  # what it does without
    get: str  # how to get it
    pages: int = PLENTY  # that it is stopped after, since it is slow
    module: str = ""  # a program in Python that needs it; else `name` is a program
    ends_itself: bool = False  # it is told how many pages; the others are stopped from outside

    def program(self) -> list[str]:
        """How to start it; nothing when it is not installed."""
        if self.module:
            return [sys.executable] if importlib.util.find_spec(self.module) else []
        found = shutil.which(self.name, path=f"{built_folder()}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
        return [found] if found else []


def built_folder() -> Path:
    """Where `peers/build` puts programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fyke-peers" / "bin"


def _fyke(course: Course) -> list[str]:
    where = ["--config", str(course.settings), "--into", str(course.folder / "crawl"), "--pages", str(course.pages)]
    return ["-m", "fyke", "crawl", course.first_page, "--scope", "web", *where]


def _wget2(course: Course) -> list[str]:
    trust = [f"--ca-certificate={course.ca}"] if course.ca else []
    limits = ["--level=0", "--span-hosts", "--max-threads=10"]
    return ["--recursive", *limits, *trust, "--quiet", f"--directory-prefix={course.folder}", course.first_page]


def _httrack(course: Course) -> list[str]:
    speed = ["--sockets=32", "--connection-per-second=0", "--max-rate=0", "--disable-security-limits"]
    reach = ["--go-everywhere", "--depth=1000", "--ext-depth=1000", "--robots=2", "--index=0"]
    return [course.first_page, "--path", str(course.folder), "--quiet", "--do-not-log", *speed, *reach]


def _scrapy(course: Course) -> list[str]:
    return [str(_HERE / "scrapy_spider.py"), course.first_page, str(course.pages), str(course.folder / "pages.warc.gz")]


def _crawlee(course: Course) -> list[str]:
    return [str(_HERE / "crawlee_crawler.py"), course.first_page, str(course.pages)]


def _katana(course: Course) -> list[str]:
    speed = ["-depth", "1000", "-concurrency", "32", "-rate-limit", "100000", "-crawl-duration", "1h"]
    return ["-list", course.first_page, *speed, "-no-scope", "-silent", "-disable-update-check"]


FYKE = Peer("fyke", _fyke, "", "make setup", module="fyke", ends_itself=True)
PEERS = {
    peer.name: peer
    for peer in (
        FYKE,
        Peer(
            "wget2", _wget2, "archive (files instead), frontier on disk, going on after a kill", "apt-get install wget2"
        ),
        Peer(
            "spider",
            lambda course: [course.first_page, str(course.folder / "pages.warc")],
            "robots.txt but of the first host, compressed archive, frontier on disk, going on after a kill",
            "benches/peers/build spider",
        ),
        Peer(
            "colly",
            lambda course: [course.first_page],
            "archive, frontier on disk, going on after a kill",
            "benches/peers/build colly",
            SOME,
        ),
        Peer("katana", _katana, "robots.txt, archive, frontier on disk", "benches/peers/build katana", SOME),
        Peer("httrack", _httrack, "archive (files instead), frontier on disk", "apt-get install httrack", SOME),
        Peer("scrapy", _scrapy, "frontier on disk", "make bench", FEW, module="scrapy", ends_itself=True),
        Peer("crawlee", _crawlee, "archive, frontier on disk", "make bench", FEW, module="crawlee", ends_itself=True),
    )
}
