"""The endless web: like the plain one, but no link is ever met twice.

A page is 20 KB, and has 60 links: 50 to its own host, half of them paths and half whole; 9 to other hosts; 1 that is
forbidden. Each is made of the address of the page it stands in, so no other page has it, and every page it leads to is
there: nginx writes it, out of 500 texts, when it is asked for. So sixty times as many URLs are met as pages fetched,
and there is no end: whoever crawls it must be told when to stop. Addresses grow with the depth of a page.
"""

from collections.abc import Mapping
from pathlib import Path

from webs import FORBIDDEN, ROBOTS, Web
from webs.plain import ACROSS, HOSTS, MEAN_BYTES, OWN, written
from webs.prose import Prose

TEXTS_OF_GROUP, GROUPS = 50, 10  # a host's texts are those of its number's last digit
_MARKUP_BYTES = 4_200  # of a page without its prose
_HERE, _NUMBER = "@here@", "@number@"  # nginx puts the page's own path there, and its host's number


def host_name(host: int | str) -> str:
    return f"www{host}.endless.test"


def hrefs(text: int) -> list[str]:
    """The links of a text. A page's path ends in a slash; what it leads to is below it, on whatever host.

    Two pages of the same path, on two hosts, lead to a third host by different links: the number of their own is in it.
    """
    group = text % GROUPS
    own = [f"http://{host_name(_NUMBER)}{_HERE}{n}/" if n % 2 else f"{_HERE}{n}/" for n in range(OWN)]
    others = [text * 7 % (HOSTS // GROUPS) * GROUPS + (group + 1 + n) % GROUPS for n in range(ACROSS)]
    across = [f"http://{host_name(other)}{_HERE}x{_NUMBER}-{n}/" for n, other in enumerate(others)]
    return [*own, *across, f"{FORBIDDEN[:-1]}{_HERE}"]


def make(folder: Path, pages: int, seed: int) -> list[str]:
    """Write the texts, under `folder`/group. How many `pages` will be asked for makes no difference."""
    prose = Prose(seed)
    sizes = prose.sizes(TEXTS_OF_GROUP * GROUPS, MEAN_BYTES - _MARKUP_BYTES)
    for group in range(GROUPS):
        (folder / str(group)).mkdir()
        (folder / str(group) / "robots.txt").write_text(ROBOTS)
    for text, size in enumerate(sizes):
        file = folder / str(text % GROUPS) / f"{text // GROUPS}.html"
        file.write_bytes(written(f"Page {_HERE} of {host_name(_NUMBER)}", hrefs(text), prose, size))
    return [host_name(host) for host in range(HOSTS)]


def settings(folder: Path, addresses: Mapping[str, str]) -> str:
    """What nginx is told: a text for each path, with the page's own address put into it."""
    share = 100 / TEXTS_OF_GROUP
    texts = "".join(f"{share}% {text}; " for text in range(1, TEXTS_OF_GROUP))
    lines = [f'split_clients "$host$request_uri" $text {{ {texts} * 0; }}']
    for number, (host, address) in enumerate(addresses.items()):
        lines.append(
            f"server {{ listen {address}:80; server_name {host}; root {folder}/{number % GROUPS}; sub_filter_once off;"
            f" sub_filter {_HERE} $request_uri; sub_filter {_NUMBER} {number};"
            " location / { try_files /$text.html =404; } location = /robots.txt { } }"
        )
    return "\n  ".join(lines)


ENDLESS = Web("endless", 60_000, f"http://{host_name(0)}/", 1, make, settings)
