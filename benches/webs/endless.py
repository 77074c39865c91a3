"""The endless web: like the plain one, but no link is ever met twice.

A page is 20 KB and has 60 links: 50 to its own host, half of them paths and half whole; 9 to other hosts; 1
forbidden. Each link contains the address of its page, so no other page has it. Every page it leads to is there: a
server behind nginx writes it when asked, from as many texts as pages will be asked for. So sixty times as many URLs
are met as pages fetched, without end: a crawler must be told when to stop. Addresses grow with the depth of a page.
With few texts the guard of traps would take it for a trap, and rightly.

nginx could write the pages itself (`sub_filter`). But that takes four times as long, and it sends them in a dozen
pieces, which would measure how a crawler waits.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import xxhash

from webs import FORBIDDEN, ROBOTS, Web
from webs.plain import ACROSS, HOSTS, MEAN_BYTES, OWN, written
from webs.prose import Prose

GROUPS = 10  # the last digit of a host's number chooses its texts
PORT = 8080  # of the server that writes the pages
SHELVES = 50  # of each group, with equally many texts
_MARKUP_BYTES = 4_200  # of a page without its prose
_HERE, _NUMBER = "@here@", "@number@"  # replaced by the page's own path, and its host's number


def host_name(host: int | str) -> str:
    return f"www{host}.endless.test"


def hrefs(text: int) -> list[str]:
    """Return the links of a text. A page's path ends in a slash, and its links lead below that path, on any host.

    Two pages of the same path, on two hosts, link to a third host by different links, which contain their own
    numbers.
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
    """Return the settings of nginx: which server writes the pages."""
    lines = [
        f"upstream writer {{ server 127.0.0.1:{PORT}; keepalive 64; }}",
        'proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Connection "";',
        "proxy_buffer_size 256k; proxy_buffers 8 256k; proxy_busy_buffers_size 256k;",
    ]
    for number, (host, address) in enumerate(addresses.items()):
        lines.append(
            f"server {{ listen {address}:80; server_name {host}; root {folder}/{number % GROUPS};"
            " location / { proxy_pass http://writer; } location = /robots.txt { } }"
        )
    return "\n  ".join(lines)


class _Writer(asyncio.Protocol):
    """A connection of nginx: gives each path one of the texts, with the page's own address put in."""

    def __init__(self, folder: Path, texts: int) -> None:
        self._folder, self._texts = folder, texts
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._asked = (self._asked + data).split(b"\r\n\r\n")
        for head in heads:
            line, _, fields = head.partition(b"\r\n")
            path, host = line.split(b" ")[1], fields.lower().partition(b"host: ")[2].partition(b"\r\n")[0]
            page = self._page(path, host)
            lines = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
            self._transport.write(lines % len(page) + page)

    def _page(self, path: bytes, host: bytes) -> bytes:
        number = host.removeprefix(b"www").partition(b".")[0]
        shelf, text = divmod(xxhash.xxh3_64_intdigest(host + path) % (SHELVES * self._texts), self._texts)
        written = (self._folder / str(int(number) % GROUPS) / str(shelf) / f"{text}.html").read_bytes()
        return written.replace(_HERE.encode(), path).replace(_NUMBER.encode(), number)


async def write(folder: Path) -> None:
    """Serve the pages of the web made in `folder`, until the process ends; print a line at the start."""
    texts = len(list((folder / "0" / "0").iterdir()))
    server = await asyncio.get_running_loop().create_server(lambda: _Writer(folder, texts), "127.0.0.1", PORT)
    print("ready", flush=True)
    await server.serve_forever()


ENDLESS = Web("endless", 60_000, f"http://{host_name(0)}/", 2, make, settings, writer="webs.endless")

if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
