"""How people really write links: twenty ways that all denote the same page.

`bodies` calls it for carelessly written pages. Invariant: every way, parsed by the WHATWG URL standard against the
page's own URL, gives a URL that the web knows as the intended page.
"""

import posixpath
from collections.abc import Callable
from typing import NamedTuple


class Link(NamedTuple):
    """A link to be written: from the page at `own` to `origin` + `target`."""

    own: str  # path and query of the linking page
    own_origin: str
    origin: str
    target: str
    literal: bool  # whether the page may hold letters outside ASCII

    @property
    def local(self) -> bool:
        """Whether the link stays on its host."""
        return self.own_origin == self.origin

    @property
    def whole(self) -> str:
        """The link with its origin."""
        return self.origin + self.target

    @property
    def short(self) -> str:
        """The link without an origin, if it stays on its host."""
        return self.target if self.local else self.whole


def _odd_port(link: Link) -> str:
    scheme, name, *port = link.origin.split(":")
    written = port[0] if port else {"http": "80", "https": "443"}[scheme]
    return f"{scheme}:{name}:0{written}{link.target}"


def _escaped_letter(link: Link) -> str:
    letter = link.target[1:2]
    return f"{link.origin}/%{ord(letter):02x}{link.target[2:]}" if letter.isalpha() else link.whole


def _literal(link: Link) -> str:
    text = link.target.replace("%20", " ")
    return link.origin + (text.replace("%C3%A9", "é") if link.literal else text)


def _backslashes(link: Link) -> str:
    path, mark, query = link.whole.partition("?")
    return path.replace("/", "\\") + mark + query


def _relative(link: Link) -> str:
    if not link.local:
        return link.whole
    path, mark, query = link.target.partition("?")
    folder = posixpath.dirname(link.own.partition("?")[0])
    way = posixpath.relpath(path, folder) + ("/" if path.endswith("/") else "")
    return ("./" if way in ("./", ".") else way) + mark + query


def _query_only(link: Link) -> str:
    path, mark, query = link.target.partition("?")
    return mark + query if mark and link.local and link.own.partition("?")[0] == path else _relative(link)


WAYS: tuple[Callable[[Link], str], ...] = (
    lambda link: link.whole,
    lambda link: link.short,
    lambda link: link.whole.partition(":")[2],
    lambda link: link.origin.upper() + link.target,
    _odd_port,
    lambda link: f"{link.short}#top",
    lambda link: f" \n\t{link.whole} \n",
    lambda link: f"{link.whole[:9]}\n{link.whole[9:-2]}\t{link.whole[-2:]}",
    lambda link: link.short.replace("/", "&#x2F;").replace("=", "&equals;"),
    lambda link: link.whole.replace(".", "&#46;"),
    lambda link: f"{link.origin}/a/./b/../..{link.target}",
    lambda link: f"{link.origin}/a/%2E%2e{link.target}",
    _escaped_letter,
    lambda link: link.origin + link.target.replace("%C3%A9", "%c3%a9"),
    _literal,
    _backslashes,
    _relative,
    _query_only,
    lambda link: f"{link.origin.partition(':')[0]}:{link.target}" if link.local else link.whole,
    lambda link: f"{link.whole}#?a=b&amp;c",
)

TAGS = (
    '<a href="{0}">{1}</a>',
    "<A HREF='{0}'>{1}</A>",
    '<p><a class=x title="a > b" href="{0}"><b>{1}</a>',
    '<map><area alt="{1}" href="{0}"></map>',
    '<div><a\nhref\n=\n"{0}"\n>{1}',
    '<a href="{0}" href="/fruit/0.html">{1}</a>',
    '<iframe src="{0}"></iframe>{1}',
    '<a href="{0}">{1}</a></div></p></table>',
    '<table><tr><a href="{0}">{1}<td></a></table>',
    '<link rel="next" href="{0}">{1}',
    '<A HREF="{0}"/>{1}',
    '<a href="{0}">\x00{1}</a>',
)
NOISE = (
    '<!-- <a href="/fruit/0.html">commented out</a> -->',
    "<script>var s = '<a href=\"/fruit/0.html\">in a script</a>';</script>",
    '<textarea><a href="/fruit/0.html">in a text field</a></textarea>',
    '<a href="javascript:void(0)">script</a><a href="mailto:ann@d0.sim">mail</a>',
    '<a href="data:text/html,hello">data</a><a href="">here</a><a>nowhere</a>',
    "<i><b>crossed</i></b> & unescaped < signs &nosuch; \x00",
    '<a href="http://[bad/">not a URL</a><a href="http:///">neither</a>',
)


def write(link: Link, draw: int, anchor: str) -> str:
    """Return the link as HTML, in a way and a tag chosen by `draw`."""
    way = WAYS[draw % len(WAYS)](link)
    return TAGS[(draw >> 8) % len(TAGS)].format(way, anchor)


def based(link: Link, anchor: str) -> str:
    """Return the link for a page with `<base href="{own_origin}/x/y/">`."""
    return f'<a href="{f"../..{link.target}" if link.local else link.whole}">{anchor}</a>'
