"""Answers to requests for robots.txt, and servers that speak other protocols."""

from fyke.lab.simweb.hostile.script import Behaviour, Many, Numbered, Pause, Reset, Script, head, to, whole

_TEXT = "text/plain"


def _rules(body: bytes) -> Script:
    return whole(body, kind=_TEXT)


_ROBOTS: dict[str, Script] = {
    "rules-silent": (Pause(),),
    "rules-reset": (Reset(),),
    "rules-slow": (head(kind=_TEXT), Many(b"# " + b"x" * 68, 300, 1.0)),
    "rules-forbidden": whole(b"", status="403 Forbidden"),
    "rules-gone": whole(b"", status="410 Gone"),
    "rules-failing": whole(b"", status="500 Internal Server Error"),
    "rules-resting": whole(b"", "Retry-After: 86400", status="503 Service Unavailable"),
    "rules-throttled": whole(b"", "Retry-After: 3600", status="429 Too Many Requests"),
    "rules-elsewhere": to("http://start.hostile:%PORT%/robots.txt"),
    "rules-in-a-circle": to("/robots.txt"),
    "rules-behind-a-chain": to("/%NEXT%"),
    "rules-at-this-machine": to("http://127.0.0.1:22/robots.txt"),
    "rules-of-16-mb": (head(kind=_TEXT), Many(b"Disallow: /x\n" * 1000, 1300)),
    "rules-of-one-line": (head(kind=_TEXT), b"Disallow: /", Many(b"x" * 65_536, 160)),
    "rules-of-wildcards": _rules(b"User-agent: *\n" + b"Disallow: /" + b"*a" * 2000 + b"$\n"),
    "rules-by-the-thousand": (head(kind=_TEXT), b"User-agent: *\n", Numbered(b"Disallow: /*%N%*b\n", 25_000)),
    "rules-of-agents": (head(kind=_TEXT), Numbered(b"User-agent: a%N%\n", 25_000), b"Disallow: /\n"),
    "rules-of-500-kb": (head(kind=_TEXT), b"User-agent: *\n", Numbered(b"Disallow: /private/%N%/\n", 21_000)),
    "rules-forbid-all": _rules(b"User-agent: *\nDisallow: /\n"),
    "rules-in-html": whole(b"<!doctype html><title>Rules</title>Disallow: /"),
    "rules-in-utf-16": _rules("User-agent: *\nDisallow: /\n".encode("utf-16")),
    "rules-with-cr": _rules(b"User-agent: *\rDisallow: /x\r"),
    "rules-of-bytes": _rules(bytes(range(256)) * 100),
    "rules-of-zeros": _rules(bytes(600_000)),
    "rules-with-escapes": _rules(b"User-agent: *\nDisallow: /\x1b[2J\x1b]0;owned\x07\nDisallow: /\n"),
    "rules-of-sitemaps": (head(kind=_TEXT), Numbered(b"Sitemap: /s%N%.xml\n", 20_000)),
    "delay-of-31-years": _rules(b"User-agent: *\nCrawl-delay: 999999999\n"),
    "delay-of-a-day": _rules(b"User-agent: *\nCrawl-delay: 86400\n"),
    "delay-of-no-number": _rules(b"User-agent: *\nCrawl-delay: nan\nCrawl-delay: inf\nCrawl-delay: -1\n"),
    "delay-of-many-digits": _rules(b"User-agent: *\nCrawl-delay: " + b"9" * 400 + b"\n"),
}
_LISTING = b"drwxr-xr-x 2 a b 4096 Jan 01 00:00 d\r\n"

BEHAVIOURS = [
    *(Behaviour(name, robots=script) for name, script in _ROBOTS.items()),
    Behaviour("all-is-slow", (head(), Many(b"x" * 70, 300, 1.0)), (head(), Many(b"# " + b"x" * 68, 300, 1.0))),
    Behaviour("ftp-silent", (Pause(),), greets=True, scheme="ftp"),
    Behaviour("ftp-without-end", (Many(b"220-welcome\r\n"),), greets=True, scheme="ftp"),
    Behaviour("ftp-that-is-http", whole(b"hello"), greets=True, scheme="ftp"),
    Behaviour("ftp-of-one-line", (b"220 ", Many(b"x" * 65_536)), greets=True, scheme="ftp"),
    Behaviour("ftp-refuses", (b"421 too many users\r\n",), greets=True, scheme="ftp"),
    Behaviour("gopher-without-end", (Many(b"1menu\t/\thost\t70\r\n" * 100),), scheme="gopher", path="/1/"),
    Behaviour("gopher-of-one-line", (Many(b"1" + b"x" * 65_536),), scheme="gopher", path="/1/"),
    Behaviour("gopher-of-tabs", (Many(b"\t" * 1000, 1000),), scheme="gopher", path="/1/"),
    Behaviour("gopher-with-escapes", (b"i\x1b[2J\t\t\t\r\n.\r\n",), scheme="gopher", path="/1/"),
    Behaviour("gopher-silent", (Pause(),), scheme="gopher", path="/1/"),
    Behaviour("speaks-before-it-is-asked", whole(b"early"), greets=True),
]
