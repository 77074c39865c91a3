"""The text of each kind of robots.txt, and its meaning, each written by hand.

`answers` calls it for the text, the judge for the meaning. `forbids` is not a robots parser, so that it can judge
one: it states per kind, in plain string terms, which targets our agent may not fetch.

Invariant: under RFC 9309, a kind's text means for the agent "fyke" what `forbids` says.
"""

from fyke.lab.simweb.kinds import SHUT, WITHOUT_RULES, RobotsKind

PARSED_BYTES = 500 * 1024  # the least that a parser must read (RFC 9309, section 2.5)

_SECTIONS = "User-agent: *\nDisallow: /private/\nDisallow: /trap/\n"
_TEXTS = {
    RobotsKind.EMPTY: "",
    RobotsKind.HTML: "<!doctype html>\n<title>Not here</title>\n<p>There is no such page.</p>\n",
    RobotsKind.ALLOW: "# Welcome\nUser-agent: *\nDisallow:\nDisallow: /trap/\n",
    RobotsKind.SECTIONS: _SECTIONS,
    RobotsKind.MOVED: _SECTIONS,
    RobotsKind.MOVED_AWAY: _SECTIONS,
    RobotsKind.FLAKY: _SECTIONS,
    RobotsKind.WILDCARDS: (
        "User-agent: *\nDisallow: /*.pdf$\nDisallow: /drafts/*.html\nAllow: /drafts/*0.html\nDisallow: /trap/\n"
    ),
    RobotsKind.ENCODED: "User-agent: *\nDisallow: /café/\nDisallow: /%61%20b/\nDisallow: /trap/\n",
    RobotsKind.OWN_GROUP: (
        "User-agent: *\nDisallow: /\n\nUser-agent: Fyke\nUser-agent: other\nDisallow: /private/\n\n"
        "User-agent: fyke\nDisallow: /drafts/\nDisallow: /trap/\n"
    ),
    RobotsKind.MESSY: (
        "\ufeffUSER-AGENT :  *   # everyone\rSpeed: 12\rnonsense without a colon\r"
        "disallow:/private/#not here\r\r  DisAllow  :   /trap/  \rHost: h0.d0.sim\r\n"
    ),
    RobotsKind.CLOSED: "User-agent: *\nDisallow: /\n",
    RobotsKind.OWN_CLOSED: "User-agent: *\nAllow: /\n\nUser-agent: fyke\nDisallow: /\n",
}


def _huge() -> str:
    head, last = _SECTIONS, "Disallow: /drafts/\n"
    line = "Disallow: /nowhere/a-line-that-only-fills-the-file/\n"
    space = PARSED_BYTES - 512 - len(head)
    return head + line * (space // len(line)) + last + "# filler\n" * 8192


def text(kind: RobotsKind, crawl_delay_s: float, sitemaps: list[str]) -> bytes:
    """Return the robots.txt of a kind that has one, announcing `sitemaps` (absolute URLs)."""
    if kind is RobotsKind.HUGE:
        body = _huge()
        head, rest = body[: len(_SECTIONS)], body[len(_SECTIONS) :]
        return (head + _announce(sitemaps) + rest).encode()
    body = f"{_SECTIONS}Crawl-delay: {crawl_delay_s:g}\n" if kind is RobotsKind.DELAY else _TEXTS[kind]
    return (body + _announce(sitemaps)).encode()


def _announce(sitemaps: list[str]) -> str:
    return "".join(f"Sitemap: {url}\n" for url in sitemaps)


def forbids(kind: RobotsKind, target: str) -> bool:
    """Return whether a host of this kind forbids "fyke" to fetch `target` (canonical path and query)."""
    if kind in WITHOUT_RULES:
        return False
    if kind in SHUT or target.startswith("/trap/"):
        return True
    if kind is RobotsKind.ALLOW:
        return False
    if kind is RobotsKind.WILDCARDS:
        rest = target.removeprefix("/drafts/")
        shut = rest != target and ".html" in rest and "0.html" not in rest
        return shut or target.endswith(".pdf")
    if kind is RobotsKind.ENCODED:
        return target.startswith(("/caf%C3%A9/", "/a%20b/"))
    if kind in (RobotsKind.OWN_GROUP, RobotsKind.HUGE):
        return target.startswith(("/private/", "/drafts/"))
    return target.startswith("/private/")
