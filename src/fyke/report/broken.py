"""Broken links, each with the pages on which it stands.

`fyke links` and `fyke.report.page` call it. A link is broken if the last visit to its target brought no answer, an
error, or only the beginning of a page, also at the end of redirects, or if redirects lead in a circle. It stands on the
pages that have it now. A target that was not fetched (beyond the scope, forbidden by robots.txt, a link with
`nofollow`) is unknown and never called broken.

Bounded: memory holds keys of broken links and the pages that are shown; DuckDB may put all else on disk.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fyke.core.batches import Kind, LinkKind
from fyke.core.outcomes import Outcome
from fyke.quantities import counted
from fyke.report.sql import Questions

MOST_REDIRECTS = 20  # browsers follow no more
AT_A_TIME = 500  # broken links read from the database at once

BROKEN = (
    Outcome.CLIENT_ERROR, Outcome.GONE, Outcome.SERVER_ERROR, Outcome.THROTTLED, Outcome.NO_SUCH_NAME,
    Outcome.DNS_FAILED, Outcome.CONNECT_FAILED, Outcome.TLS_FAILED, Outcome.TIMED_OUT, Outcome.STALLED,
    Outcome.BROKEN_OFF, Outcome.BAD_ANSWER, Outcome.HOST_RETIRED, Outcome.ROBOTS_UNREACHABLE,
    Outcome.REDIRECTED_TOO_OFTEN, Outcome.INCOMPLETE,
)  # fmt: skip
_BROKEN = ", ".join(f"'{outcome}'" for outcome in BROKEN)
_SAYING = ", ".join(
    f"'{each}'" for each in (Outcome.OK, Outcome.TOO_LARGE, Outcome.INCOMPLETE, Outcome.REDIRECTED, Outcome.GONE)
)
CIRCLE = "redirects in a circle"
NOWHERE = "redirects to a URL that cannot be fetched"


class BrokenLink(NamedTuple):
    """The target of a broken link, why it is broken, and where it stands."""

    url: str
    status: int  # of the answer; 0 without one
    why: str
    redirects_to: str  # where redirects end, if they do; otherwise empty
    seed: bool  # whether the crawl began there
    pages: int  # on which it stands
    on: list[str]  # the first of them, by URL

    def __str__(self) -> str:
        """Return it in lines for people."""
        where = [f"on {url}" for url in self.on]
        if self.pages > len(self.on):
            where.append(f"and on {counted(self.pages - len(self.on), 'page')} more")
        lines = [f"-> {self.redirects_to}"] * bool(self.redirects_to) + ["a seed"] * self.seed + where
        return "\n      ".join([f"{self.status or '---':>3}   {self.url}  ({self.why})", *lines])


class BrokenLinks:
    """The broken links of a crawl, found once; `questions` must be open."""

    def __init__(self, questions: Questions) -> None:
        """Find the broken links. Raises StateDamaged, DiskFull."""
        self._ask = questions.ask
        self._latest()
        self._follow_redirects()
        self._find_circles()
        self._place()
        ((self.count, self.pages),) = self._ask(
            "select (select count(*) from ranked), (select count(distinct source) from stands)"
        )
        ((self.targets, self.unvisited),) = self._ask(
            f"with lead as (select distinct target from links where kind != {LinkKind.REDIRECT:d}) select count(*),"
            " count(*) filter (target not in (select key from latest)) from lead",
            links=["target", "kind"],
        )

    def __repr__(self) -> str:
        return f"BrokenLinks({self.count} on {self.pages} pages)"

    def as_dict(self) -> dict[str, int]:
        return {"broken": self.count, "pages": self.pages, "targets": self.targets, "unvisited": self.unvisited}

    def __str__(self) -> str:
        found = (
            f"{counted(self.count, 'broken link')} on {counted(self.pages, 'page')}"
            if self.count
            else "no broken links"
        )
        unknown = f", {self.unvisited:,} of them not visited" if self.unvisited else ""
        return f"{found}; links lead to {counted(self.targets, 'URL')}{unknown}"

    def _latest(self) -> None:
        """Make `bad`, URLs whose last visit failed, and `moved`, URLs that it found redirected, with their targets."""
        self._ask(
            "create table latest as select key, max(fetched_at) as at from visits group by key",
            visits=["key", "fetched_at"],
        )
        self._ask(
            "create table ended as select v.key, any_value(url) as url, any_value(outcome) as outcome,"
            " any_value(status) as status, any_value(detail) as detail, any_value(redirect_to) as redirect_to,"
            f" bool_or(kind = '{Kind.SEED.name.lower()}') as seed from visits v join latest l on v.key = l.key and"
            f" v.fetched_at = l.at where outcome in ({_BROKEN}, '{Outcome.REDIRECTED}') group by v.key",
            visits=["key", "url", "outcome", "status", "detail", "redirect_to", "fetched_at", "kind"],
        )
        self._ask(
            "create table bad as select key, url, status,"
            f" if(outcome = '{Outcome.REDIRECTED}', '{NOWHERE}', outcome) as why, detail, '' as redirects_to, seed,"
            f" 0 as steps from ended where outcome in ({_BROKEN})"
            f" or (outcome = '{Outcome.REDIRECTED}' and redirect_to is null)"
        )
        self._ask(
            "create table moved as select distinct e.key, e.url, e.seed, target from links join ended e"
            f" on source = e.key and target_url = redirect_to and kind = {LinkKind.REDIRECT:d}",
            links=["source", "target", "target_url", "kind"],
        )

    def _follow_redirects(self) -> None:
        """Add to `bad` the URLs that redirect to a bad one."""
        for step in range(1, MOST_REDIRECTS + 1):
            ((more,),) = self._ask(
                "insert into bad select m.key, m.url, b.status, b.why, b.detail,"
                " if(b.redirects_to = '', b.url, b.redirects_to), m.seed, ? from moved m join bad b"
                " on m.target = b.key and b.steps = ? where m.key not in (select key from bad)",
                step,
                step - 1,
            )
            if not more:
                return

    def _find_circles(self) -> None:
        """Add to `bad` URLs that never leave the redirects."""
        self._ask("create table circling as select * from moved where key not in (select key from bad)")
        left = True
        while left:
            ((left,),) = self._ask("delete from circling where target not in (select key from circling)")
        self._ask(
            f"insert into bad select key, any_value(url), 0, '{CIRCLE}', '', '', bool_or(seed), 0 from circling"
            " group by key"
        )

    def _place(self) -> None:
        """Make `stands`, each broken link with each page that has it (redirects are no pages), and `ranked`, these
        links."""
        self._find_renewed()
        self._ask(
            "create table pairs as select distinct source, target from links left join renewed on source = key where"
            f" target in (select key from bad) and kind != {LinkKind.REDIRECT:d} and (key is null or arrival >= since)",
            links=["source", "target", "kind", "arrival"],
        )
        self._ask(
            "create table named as select key, any_value(url) as url from visits where key in"
            " (select source from pairs) group by key",
            visits=["key", "url"],
        )
        self._ask("create table stands as select target, source, url from pairs join named on source = key")

        self._ask(
            "create table ranked as select b.*, coalesce(n, 0) as pages, row_number() over"
            " (order by coalesce(n, 0) desc, b.url) as place from bad b left join"
            " (select target, count(*) as n from stands group by target) on target = b.key where n > 0 or seed"
        )

    def _find_renewed(self) -> None:
        """Make `renewed`: pages that a later visit found changed, with the arrival at which their present links begin
        in the table, where these are the page's last ones. If a page says again what it once said, its present links
        are further back, so all links that it ever had count."""
        self._ask(
            "create table said as select key, count(*) as times, arg_max(links, fetched_at) as links,"
            f" arg_max(duplicate, fetched_at) as known from visits where outcome in ({_SAYING}) group by key"
            " having times > 1 and not known",
            visits=["key", "links", "duplicate", "fetched_at", "outcome"],
        )
        self._ask(
            "create table renewed as select key, coalesce(min(arrival) filter (place <= links), max(arrival) + 1) as"
            " since from (select key, links, arrival, row_number() over (partition by key order by arrival desc) as"
            " place from links join said on source = key) group by key",
            links=["source", "arrival"],
        )

    def worst(self, most: int | None = None, shown: int = 10) -> Iterator[BrokenLink]:
        """Yield at most `most` links, those on most pages first, each with `shown` of its pages."""
        self._ask(
            "create or replace table listed as select * from (select target, url, row_number() over"
            " (partition by target order by url) as place from stands) where place <= ?",
            shown,
        )
        end = self.count if most is None else min(most, self.count)
        for begin in range(0, end, AT_A_TIME):
            rows = self._ask(
                "select url, status, why, detail, redirects_to, seed, pages, key from ranked"
                " where place > ? and place <= ? order by place",
                begin,
                min(begin + AT_A_TIME, end),
            )
            on: dict[int, list[str]] = {}
            for target, url in self._ask(
                "select target, l.url from listed l join ranked r on target = key where r.place > ? and r.place <= ?"
                " order by target, l.place",
                begin,
                begin + AT_A_TIME,
            ):
                on.setdefault(target, []).append(url)
            for url, status, why, detail, redirects_to, seed, pages, key in rows:
                yield BrokenLink(url, status, _words(why, detail), redirects_to, seed, pages, on.get(key, []))


def _words(why: str, detail: str) -> str:
    said = why.replace("_", " ")
    return f"{said}: {detail}" if detail else said
