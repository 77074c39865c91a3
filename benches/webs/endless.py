"""The endless web: like the plain one, but no link is ever met twice.

A page is 20 KB, and has 60 links: 50 to its own host, half of them paths and half whole; 9 to other hosts; 1 that is
forbidden. Each is made of the address of the page it stands in, so no other page has it, and every page it leads to is
there: nginx writes it, out of as many texts as pages will be asked for, when it is asked. So sixty times as many URLs
are met as pages fetched, and there is no end: whoever crawls it must be told when to stop. Addresses grow with the
depth of a page. With few texts it would be a trap, as the guard of traps sees it, and rightly.
"""

from collections.abc import Mapping
from pathlib import Path

from webs import FORBIDDEN, ROBOTS, Web
from webs.plain import ACROSS, HOSTS, MEAN_BYTES, OWN, written
from webs.prose import Prose

GROUPS = 10  # a host's texts are those of its number's last digit
SHELVES = 50  # of each group, with as many texts each
_MARKUP_BYTES = 4_200  # of a page without its prose
_BEHIND = "127.0.0.1:8080"  # who writes the pages
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
    """Write the texts, as many as `pages`, under `folder`/group/shelf."""
    prose, text = Prose(seed), 0
    for group in range(GROUPS):
        for shelf in range(SHELVES):
            (folder / str(group) / str(shelf)).mkdir(parents=True)
            sizes = prose.sizes(max(1, pages // GROUPS // SHELVES), MEAN_BYTES - _MARKUP_BYTES)
            for number, size in enumerate(sizes):
                page = written(f"Page {_HERE} of {host_name(_NUMBER)}", hrefs(text * GROUPS + group), prose, size)
                (folder / str(group) / str(shelf) / f"{number}.html").write_bytes(page)
                text += 1
        (folder / str(group) / "robots.txt").write_text(ROBOTS)
    return [host_name(host) for host in range(HOSTS)]


def settings(folder: Path, addresses: Mapping[str, str]) -> str:
    """What nginx is told: a text for each path, with the page's own address put into it.

    What does so sends a page in a dozen pieces; the server in front gathers them, as a page of a file comes.
    """
    texts = len(list((folder / "0" / "0").iterdir()))
    lines = [_split("$host$request_uri", "$shelf", SHELVES), _split("$request_uri$host", "$text", texts)]
    lines += [
        f"upstream behind {{ server {_BEHIND}; keepalive 64; }}",
        'proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Connection "";',
        "proxy_buffer_size 256k; proxy_buffers 8 256k; proxy_busy_buffers_size 256k;",
    ]
    for number, (host, address) in enumerate(addresses.items()):
        lines.append(
            f"server {{ listen {_BEHIND}; server_name {host}; root {folder}/{number % GROUPS}; access_log off;"
            f" sub_filter_once off; sub_filter {_HERE} $request_uri; sub_filter {_NUMBER} {number};"
            " location / { try_files /$shelf/$text.html =404; } }"
        )
        lines.append(
            f"server {{ listen {address}:80; server_name {host}; root {folder}/{number % GROUPS};"
            f" location / {{ proxy_pass http://behind; }} location = /robots.txt {{ }} }}"
        )
    return "\n  ".join(lines)


def _split(source: str, name: str, count: int) -> str:
    """Settings of nginx: `name` is one of `count` numbers, by chance."""
    share = int(10_000 / count) / 100
    numbers = "".join(f"{share:.2f}% {number}; " for number in range(1, count))
    return f'split_clients "{source}" {name} {{ {numbers}* 0; }}'


ENDLESS = Web("endless", 60_000, f"http://{host_name(0)}/", 2, make, settings)
