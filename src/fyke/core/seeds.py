"""What does a person mean by a seed?

A URL, or a name such as `example.org` for its front page. Never a user's name and password: Fyke sends none, and
`fyke.toml` would keep them in clear. (On pages, links that have them are followed without, as everybody else would.)
Used by the agent, which begins there, by the directory,
which compares the seeds of two commands, and by `fyke why`.
"""

import re
from collections.abc import Iterable

from fyke.core.errors import BadUrl
from fyke.core.urls import Locator, canonical, has_credentials, locate

_SCHEMELESS = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+\.?)(?::\d+)?(?:[/?#]|\Z)")


def seed_of(seed: str) -> Locator:
    """What is meant by `seed`, as a locator. Raises BadUrl when that is no URL, or one with a user's name."""
    url = canonical(seed) or (canonical(f"http://{seed}") if _SCHEMELESS.match(seed) else None)
    if url is not None and has_credentials(seed):
        raise BadUrl(
            f"{url} was given with a user name or password, and Fyke sends none: leave them out, also in fyke.toml"
        )
    if url is None:
        raise BadUrl(f"{seed!r} is not a URL Fyke can fetch: say http://, https://, ftp:// or gopher:// and a host")
    return locate(url)


def seeds_of(seeds: Iterable[str]) -> list[Locator]:
    """The `seeds` as locators. Raises BadUrl for the first that is none."""
    return [seed_of(seed) for seed in seeds]
