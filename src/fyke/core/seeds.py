"""What does a person mean by a seed?

A URL, or a name such as `example.org` for its front page. A seed with a user name or password is refused: Fyke sends
none, and `fyke.toml` would keep them in clear. (Links on pages are followed without them.) Used by the agent, which
begins with the seeds, by the directory, which compares the seeds of two commands, and by `fyke why`.
"""

import re
from collections.abc import Collection, Iterable

from fyke.core.errors import BadUrl
from fyke.core.urls import DEFAULT_PORTS, Locator, canonical, has_credentials, locate

MOST_SHOWN = 100  # characters of a seed in a message
_SCHEMELESS = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+\.?)(?::\d+)?(?:[/?#]|\Z)")
_SEVERAL = re.compile(r"\S\s+[A-Za-z][A-Za-z0-9+.-]*://")
_BEFORE_LOGIN = re.compile(r"(?:\w{1,20}:[/\\]{2}|mailto:)?[/\\]{0,2}")


def seed_url(seed: str, schemes: Collection[str] | None = None) -> str:
    """Return the canonical URL meant by `seed`.

    Raises BadUrl if that is not a URL, has a user name or password, or has none of `schemes` (None: any scheme).
    """
    if _SEVERAL.search(seed):
        raise BadUrl(f"{_shown(seed)} are several URLs: give each as its own argument, or on its own line")
    url = canonical(f"http://{seed}" if _SCHEMELESS.match(seed) else seed)
    if url is None or (schemes is not None and url.partition(":")[0] not in schemes):
        *others, last = (f"{scheme}://" for scheme in dict.fromkeys([*DEFAULT_PORTS, *sorted(schemes or ())]))
        if seed.lower().startswith((*others, last)):
            raise bad_url(seed, "its host or port is not valid, or it is too long")
        raise bad_url(seed, f"write {', '.join(others)} or {last} and a host")
    if "@" in seed and has_credentials(seed):
        raise BadUrl(
            f"{url} contains a user name or password: leave them out, also in fyke.toml; put them into a"
            " [[site]] table of the settings"
        )
    return url


def bad_url(seed: str, why: str) -> BadUrl:
    """Return the error for `seed`, which shows neither all of a long one nor a password."""
    return BadUrl(f"{_shown(seed)} is not a URL Fyke can fetch: {why}")


def _shown(seed: str) -> str:
    shown = _without_password(seed)
    return repr(shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}…")


def _without_password(seed: str) -> str:
    """Return `seed`, which is not a URL, without a text that may be a password."""
    before, at, after = seed.rpartition("@")
    begin = len(_BEFORE_LOGIN.match(before)[0])  # type: ignore[index]  # it matches anything
    user, colon, _ = before[begin:].partition(":")
    return f"{before[:begin]}{user}:…@{after}" if at and colon else seed


def seed_of(seed: str, schemes: Collection[str] | None = None) -> Locator:
    """Return the locator meant by `seed`. Raises BadUrl as `seed_url` does."""
    return locate(seed_url(seed, schemes))


def seeds_of(seeds: Iterable[str], schemes: Collection[str] | None = None) -> list[Locator]:
    """Return the `seeds` as locators. Raises BadUrl for the first wrong one."""
    return [seed_of(seed, schemes) for seed in seeds]
