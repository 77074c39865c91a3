"""Sites that show each page under many URLs: the judge of a learner of rewrite rules.

A site is a `Dust`: pages with a true name each, and other ways in which links name them. `page_of` is the truth: the
page to which a URL leads. Some keys of queries matter, as at any honest site. Ids that do not exist are answered with
one text and status 200. All is pure, except for pages that change at every request. `dust_server` serves it.

Invariant: its record determines a site; every page is linked to, under its true name or another.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import NamedTuple
from urllib.parse import parse_qsl

NOTHING = "nothing"  # the page shown for ids that do not exist


class Session(NamedTuple):
    """The place of a session id in URLs: `query` (?key=...), `parameter` (;key=...) or `segment` (/before...after/)."""

    where: str
    key: str = ""
    before: str = ""
    after: str = ""


class PageView(NamedTuple):
    """How URLs name a view, which shows the text of a page without its links: by a `first` or `last` segment `name` of
    the path, or by a key (`query`)."""

    where: str
    name: str


@dataclass(frozen=True)
class Dust:
    """A site.

    - `matter`: keys that select a page. A thing is `/item?KEY=n&KEY=m`, with a number each.
    - `ignored`: keys that select nothing, with the values that links give them.
    - `usual`: a key that names a page's usual form by one value, and other pages by others.
    - `views`: ways to see a page without its links. One is the same page, as long as nobody asks which.
    """

    seed: int
    host: str
    articles: int = 60
    folders: int = 30
    things: int = 60
    aliases: tuple[str, ...] = ()
    session: Session | None = None
    sessions: int = 2
    issues_sessions: bool = False  # whether a visitor without a session is given one, in every link
    ignored: tuple[tuple[str, tuple[str, ...]], ...] = ()
    index: str = ""
    shuffled: bool = False
    matter: tuple[str, ...] = ("id", "part")
    usual: tuple[str, str, str] | None = None  # key, its usual value, another
    changing_share: float = 0.0  # share of pages with another text at every request
    noise: tuple[str, ...] = ()  # what changes at every request on every page, from `_NOISE`
    views: tuple[PageView, ...] = ()
    missing: int = 20  # links to things that do not exist
    links_per_page: int = 8  # links of a page to other pages

    def pages(self) -> list[str]:
        """Return the true names of all pages: targets without their first slash."""
        others = [f"a{n}.html?{self.usual[0]}={self.usual[2]}" for n in range(self.articles)] if self.usual else []
        return [
            "",
            *(f"a{n}.html" for n in range(self.articles)),
            *(f"folder{n}/" for n in range(self.folders)),
            *(f"item?{self._selected(n)}" for n in range(self.things)),
            *others,
        ]

    def _selected(self, number: int) -> str:
        first, *more = self.matter
        return "&".join([f"{first}={number // 4}", *(f"{key}={number % 4}" for key in more)])

    def page_of(self, host: str, target: str) -> str | None:
        """Return the true name of the page at `target` (with its first slash) of `host`, or None."""
        if host not in (self.host, *self.aliases):
            return None
        path, _, query = self.seen(target)[1][1:].partition("?")
        path = self._without_session(path)
        if self.index and path.rpartition("/")[2] == self.index:
            path = path[: -len(self.index)]
        pairs = dict(parse_qsl(query, keep_blank_values=True))
        for key, _ in self.ignored:
            pairs.pop(key, None)
        if self.session is not None and self.session.where == "query":
            pairs.pop(self.session.key, None)
        if self.usual and pairs.get(self.usual[0]) == self.usual[1]:
            del pairs[self.usual[0]]
        order = [key for key in (*self.matter, *(self.usual or ())[:1]) if key in pairs]
        if set(order) != set(pairs):
            return None
        name = path + ("?" if order else "") + "&".join(f"{key}={pairs[key]}" for key in order)
        if name in self._names:
            return name
        return NOTHING if path == "item" else None

    def seen(self, target: str) -> tuple[PageView | None, str]:
        """Return the view that `target` (with its first slash) names, and the target of its page."""
        path, mark, query = target[1:].partition("?")
        for view in self.views:
            before, after = f"{view.name}/", f"/{view.name}"
            if view.where == "first" and path.startswith(before):
                return view, f"/{path.removeprefix(before)}{mark}{query}"
            if view.where == "last" and path.endswith(after):
                return view, f"/{path.removesuffix(after)}{mark}{query}"
            pairs = query.split("&")
            if view.where == "query" and f"{view.name}=1" in pairs:
                pairs.remove(f"{view.name}=1")
                return view, f"/{path}?{'&'.join(pairs)}" if pairs else f"/{path}"
        return None, target

    @property
    def _names(self) -> frozenset[str]:
        return _names(self)

    def _chance(self, what: str, which: object) -> Random:
        """Return draws that are the same each time."""
        return Random(f"{self.seed} {what} {which}")

    def _without_session(self, path: str) -> str:
        session = self.session
        if session is None:
            return path
        if session.where == "parameter":
            return "/".join(segment.partition(f";{session.key}=")[0] for segment in path.split("/"))
        first, slash, rest = path.partition("/")
        if session.where == "segment" and slash and first.startswith(session.before) and first.endswith(session.after):
            return rest
        return path

    def session_of(self, target: str) -> str:
        """Return the session id in a target or the one issued there; empty without either."""
        tokens = list(self.tokens())
        for token in tokens:
            if token in target:
                return token
        return self._chance("issued", target).choice(tokens) if self.issues_sessions and tokens else ""

    def tokens(self) -> Iterator[str]:
        """Yield the session ids."""
        for number in range(self.sessions if self.session else 0):
            yield f"{self._chance('session', number).randrange(1 << 60):016x}{number}"

    def links(self, name: str, session: str) -> Iterator[str]:
        """Yield the links of the page `name` in a `session`: absolute URLs without scheme."""
        names = _ordered(self)
        place = names.index(name) if name != NOTHING else 0
        dice = self._chance("links", name)
        next_ones = [names[(3 * place + step) % len(names)] for step in (1, 2, 3)]
        drawn = [names[dice.randrange(len(names))] for _ in range(self.links_per_page - 3)]
        for target in [*next_ones, *drawn] if name != NOTHING else names[:1]:
            yield self._written(target, session, dice)
        if name == "":
            for token in self.tokens():
                yield self._written(names[1 % len(names)], token, dice)
            for number in range(self.missing):
                first, *more = self.matter
                yield f"//{self.host}/item?{first}={1000 + number}" + "".join(f"&{key}=0" for key in more)

    def _written(self, name: str, session: str, dice: Random) -> str:
        """Return a URL of the page `name`, in one of the site's ways."""
        path, _, query = name.partition("?")
        pairs = [pair for pair in query.split("&") if pair]
        if self.index and (not path or path.endswith("/")) and dice.random() < 0.5:
            path += self.index
        if self.usual and path.startswith("a") and self.usual[0] not in query and dice.random() < 0.3:
            pairs.append(f"{self.usual[0]}={self.usual[1]}")
        pairs += [
            f"{key}={values[dice.randrange(len(values))]}" for key, values in self.ignored if dice.random() < 0.25
        ]
        if session and self.session and self.session.where == "query":
            pairs.append(f"{self.session.key}={session}")
        if self.shuffled and dice.random() < 0.5:
            pairs.reverse()
        if session and self.session and self.session.where == "parameter":
            path += f";{self.session.key}={session}"
        if session and self.session and self.session.where == "segment":
            path = f"{self.session.before}{session}{self.session.after}/{path}"
        view = dice.choice(self.views) if self.views and dice.random() < 0.4 else None
        if view is not None and path and not path.endswith("/"):
            path = f"{view.name}/{path}" if view.where == "first" else path
            path = f"{path}/{view.name}" if view.where == "last" else path
            pairs += [f"{view.name}=1"] if view.where == "query" else []
        hosts = (self.host, *self.aliases)
        return f"//{hosts[dice.randrange(len(hosts))]}/{path}" + ("?" if pairs else "") + "&".join(pairs)

    def body(self, name: str, session: str, count: int, view: PageView | None = None) -> bytes:
        """Return the page `name` in a `session`, or a `view` of it; `count` changes the parts that change at every
        request."""
        if name == NOTHING:
            return b"<title>Nothing here</title><p>There is no such thing.</p><a href=/>home</a>"
        dice = self._chance("body", name)
        text = " ".join(f"word{dice.randrange(5000)}" for _ in range(60))
        now = f"<p>visitor {count}</p>" if name and dice.random() < self.changing_share else ""
        made_up = f"{self._chance('noise', (count, name)).getrandbits(60):x}"
        letters = made_up.translate(_LETTERS)
        now += "".join(_NOISE[kind].format(made_up, count, letters) for kind in self.noise)
        anchors = "".join(f'<a href="{url.replace("&", "&amp;")}">more</a> ' for url in self.links(name, session))
        if view is not None:
            anchors = f"<p>To {view.name} this page: //{self.host}/{name} <a href='/{name}'>back</a></p>"
        return f"<html><title>{name or 'home'}</title><p>{text}</p>{now}{anchors}</html>".encode()


_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_NOISE = {  # {0}: made up anew, {1}: the number of the request, {2}: letters alone, made up anew
    "token": "<script>var t = '{0}';</script><form><input type=hidden name=csrf value='{0}'></form>",
    "advert": "<div class='box sponsored'><a href='/click/{0}'>Buy {0} now</a></div>",
    "menu": "<nav>You were at page {1}</nav>",
    "clock": "<p>It is {1} seconds past noon.</p>",
    "quote": "<p>Somebody said {2} of this page.</p>",
}


@lru_cache(maxsize=64)
def _names(site: Dust) -> frozenset[str]:
    return frozenset(_ordered(site))


@lru_cache(maxsize=64)
def _ordered(site: Dust) -> tuple[str, ...]:
    return tuple(site.pages())
