"""The requests of a person to a crawl after it began: seeds added later, hosts blocked.

Kept in the file `asked.json` in the crawl's folder `state`. Written by the running crawl, or under its lock if none
runs; read by both, and by explanations. Invariant: a request is safe on the disk before it is answered.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

from fyke.core.config import Config
from fyke.core.errors import BadUrl
from fyke.core.seeds import seeds_of
from fyke.core.urls import Locator, canonical, split
from fyke.disk.files import allowed, damaged, read_whole, write_whole
from fyke.disk.sealed import sealed, unsealed

NAME = "asked.json"
BLOCKED_NAMED = 5  # blocked hosts, in a line for people


def all_seeds(state: Path, config: Config, schemes: Collection[str] | None = None) -> list[Locator]:
    """Return the seeds that `config` names and those that were added later, by the crawl's folder `state`. `schemes` as
    in `seed_url`. Raises BadUrl, StateDamaged."""
    return seeds_of([*config.crawl.seeds, *AskedLater(state).seeds], schemes)


class AskedLater:
    """The requests in the file `asked.json` in the crawl's folder `state`."""

    def __init__(self, state: Path, *, shared: bool = False) -> None:
        """If `shared`, another process writes the file. Raises StateDamaged."""
        self._shared = shared
        self._path = state / NAME
        self._kept = self._path.is_file()
        self.seeds: list[str] = []
        self.blocked: list[str] = []
        if self._kept:
            try:
                with allowed(self._path):
                    found = unsealed("asked", read_whole(self._path))
                self.seeds, self.blocked = list(found["seeds"]), list(found["blocked"])
            except (OSError, ValueError, KeyError, TypeError):
                raise damaged(self._path, "its checksum does not match") from None

    def __repr__(self) -> str:
        return f"AskedLater({len(self.seeds)} seeds, {len(self.blocked)} hosts blocked)"

    def state(self) -> dict[str, int]:
        """Return how much was asked, and whether the file exists; a checkpoint keeps that, so a loss is noticed."""
        return {"seeds": len(self.seeds), "blocked": len(self.blocked), "kept": int(self._kept)}

    def keep(self) -> None:
        """Make the file before anything is asked, so that a loss is noticed. Raises as `block`."""
        if not self._kept:
            self._change(self.seeds, self.blocked)

    @property
    def blocked_in_words(self) -> str:
        """The blocked hosts, the first few by name."""
        more = len(self.blocked) - BLOCKED_NAMED
        return ", ".join(self.blocked[:BLOCKED_NAMED]) + (f" and {more:,} more" if more > 0 else "")

    def add_seeds(self, urls: Iterable[str]) -> None:
        """Add `urls` to the seeds. Raises DiskFull or DirectoryError, as `block`, and then nothing has changed."""
        self._change([*self.seeds, *urls], self.blocked)

    def block(self, host: str, blocked: bool) -> bool:
        """Block or unblock `host`; return False if nothing changed."""
        if blocked == (host in self.blocked):
            return False
        others = [one for one in self.blocked if one != host]
        self._change(self.seeds, [*others, host] if blocked else others)
        return True

    def _change(self, seeds: list[str], blocked: list[str]) -> None:
        if not self._shared:
            write_whole(self._path, sealed("asked", {"seeds": seeds, "blocked": blocked}))
            self._kept = True
        self.seeds, self.blocked = seeds, blocked


def host_named(text: str) -> str:
    """Return the host that a person means by `text`, a name or a URL. Raises BadUrl, also for a pattern."""
    url = canonical(text if "://" in text else f"http://{text}")
    host = split(url).host if url else "*"
    if "*" in host:
        raise BadUrl(f"{text[:200]!r} is not a host: write example.org")
    return host
