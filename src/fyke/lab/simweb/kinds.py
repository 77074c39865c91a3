"""The closed lists of oddities: of a page, a host's robots.txt, its name, its sitemap.

`spec` and every decision call it; `spec` has a share for each kind, under the same word. This is the one place that
defines each kind.
"""

from enum import StrEnum


class PageKind(StrEnum):
    """What the server does when asked for a page. Only pages that lead to no new page may be odd."""

    ORDINARY = "ordinary"
    REDIRECT = "redirect"  # 301, 302, 303, 307 or 308 to a page of the same host
    REDIRECT_AWAY = "redirect_away"  # the same, to a page of another host
    CHAIN = "chain"  # two to four redirects before a page
    LOOP = "loop"  # redirects in a circle
    NOT_FOUND = "not_found"  # 404
    GONE = "gone"  # 410
    BROKEN = "broken"  # 500, always
    FLAKY = "flaky"  # 503 at first, then the page
    THROTTLED = "throttled"  # 429 with Retry-After in seconds at first, then the page
    THROTTLED_DATE = "throttled_date"  # the same, with an HTTP-date
    SLOW = "slow"  # the page in drips
    STALLED = "stalled"  # no answer, ever
    STALLED_MIDWAY = "stalled_midway"  # half a page, with a link that stands nowhere else, then nothing
    RESET = "reset"  # the connection is reset
    TRUNCATED = "truncated"  # the same half, then the end of the connection
    DUPLICATE = "duplicate"  # the bytes of another page
    NOINDEX = "noindex"  # meta robots noindex
    NOINDEX_HEADER = "noindex_header"  # X-Robots-Tag: noindex
    NOFOLLOW = "nofollow"  # meta robots nofollow, and a link that stands nowhere else
    NOFOLLOW_HEADER = "nofollow_header"  # X-Robots-Tag: nofollow, and a link that stands nowhere else
    PDF = "pdf"  # application/pdf
    TEXT = "text"  # text/plain


COSTLY = frozenset(
    {
        PageKind.FLAKY,
        PageKind.THROTTLED,
        PageKind.THROTTLED_DATE,
        PageKind.SLOW,
        PageKind.STALLED,
        PageKind.STALLED_MIDWAY,
    }
)
"""Kinds that cost a polite crawler time: only on hosts at the rim, which are small."""

PASSING = frozenset({PageKind.FLAKY, PageKind.THROTTLED, PageKind.THROTTLED_DATE})
"""Kinds that become a page when asked again."""

REDIRECTING = frozenset({PageKind.REDIRECT, PageKind.REDIRECT_AWAY, PageKind.CHAIN, PageKind.LOOP})

FAILING = frozenset(
    {
        PageKind.NOT_FOUND,
        PageKind.GONE,
        PageKind.BROKEN,
        PageKind.STALLED,
        PageKind.STALLED_MIDWAY,
        PageKind.RESET,
        PageKind.TRUNCATED,
    }
)
"""Kinds of which no whole page with status 200 can be had."""

BEGINNING = frozenset({PageKind.STALLED_MIDWAY, PageKind.TRUNCATED})
"""Kinds of which only the beginning can be had."""


class RobotsKind(StrEnum):
    """What a host answers for /robots.txt."""

    NONE = "none"  # 404
    REFUSED = "refused"  # 403: a client error, so everything is allowed
    EMPTY = "empty"  # 200 and an empty body
    HTML = "html"  # 200 and an HTML page without a rule
    ALLOW = "allow"  # everything may be fetched, except the trap
    SECTIONS = "sections"  # some prefixes forbidden
    WILDCARDS = "wildcards"  # `*`, `$`, and an Allow that is longer than its Disallow
    ENCODED = "encoded"  # rules with letters outside ASCII and needless escapes
    OWN_GROUP = "own_group"  # "*" may fetch nothing; two groups for "fyke" must be merged
    MESSY = "messy"  # BOM, CR line ends, blanks, unknown lines, odd capitals
    HUGE = "huge"  # a rule just before 500 KiB, and more lines after
    MOVED = "moved"  # 301 to another path
    MOVED_AWAY = "moved_away"  # 302 to another host
    DELAY = "delay"  # Crawl-delay
    CLOSED = "closed"  # Disallow: /
    OWN_CLOSED = "own_closed"  # "*" may fetch everything, "fyke" nothing
    DOWN = "down"  # 503 always: nothing may be fetched
    FLAKY = "flaky"  # 503 at first, then as SECTIONS


FRIENDLY = frozenset(
    set(RobotsKind) - {RobotsKind.DELAY, RobotsKind.CLOSED, RobotsKind.OWN_CLOSED, RobotsKind.DOWN, RobotsKind.FLAKY}
)
"""Kinds that leave a host's tree of pages open at once: what hosts that lead on to others may have."""

WITHOUT_RULES = frozenset({RobotsKind.NONE, RobotsKind.REFUSED, RobotsKind.EMPTY, RobotsKind.HTML})
SHUT = frozenset({RobotsKind.CLOSED, RobotsKind.OWN_CLOSED, RobotsKind.DOWN})


class NameKind(StrEnum):
    """What the DNS says of a host."""

    PLAIN = "plain"  # one address
    SEVERAL = "several"  # two addresses
    ALIAS = "alias"  # a CNAME and its address
    SLOW = "slow"  # a late answer
    FLAKY = "flaky"  # SERVFAIL at first, then an answer
    SERVFAIL = "servfail"  # SERVFAIL always
    SILENT = "silent"  # no answer
    MISSING = "missing"  # NXDOMAIN, although pages link to it
    REFUSED = "refused"  # an address at which nobody listens


DEAD_NAMES = frozenset({NameKind.SERVFAIL, NameKind.SILENT, NameKind.MISSING, NameKind.REFUSED})


class SitemapKind(StrEnum):
    """The form of the sitemap that a host's robots.txt announces."""

    NONE = "none"
    XML = "xml"
    INDEX = "index"
    GZIP = "gzip"
    TEXT = "text"


class FeedKind(StrEnum):
    """The form of the feed that a host's front page announces."""

    NONE = "none"
    RSS = "rss"
    ATOM = "atom"


class Charset(StrEnum):
    """How a page is encoded; the value is its declared label."""

    UTF_8 = "utf-8"
    WINDOWS_1252 = "windows-1252"
    SHIFT_JIS = "shift_jis"
    EUC_KR = "euc-kr"
    GB18030 = "gb18030"
    KOI8_R = "koi8-r"
    UTF_16 = "utf-16"


class Declared(StrEnum):
    """Where a page declares its charset."""

    HEADER = "header"
    META = "meta"
    NOWHERE = "nowhere"
    WRONGLY = "wrongly"
