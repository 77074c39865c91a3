"""Sites that show pages under many URLs. The learner was tuned to the first three."""

from collections.abc import Iterator
from dataclasses import fields
from random import Random

from fyke.lab.simweb.dust import Dust, PageView, Session

SHOP = Dust(
    seed=1, host="shop.sim", articles=300, folders=60, things=240, links_per_page=4,
    aliases=("www.shop.sim",), session=Session("query", "sid"), sessions=1,
    ignored=(("utm_source", ("news", "ad", "mail")), ("print", ("1",))), index="index.html", shuffled=True,
    matter=("id", "part"), usual=("lang", "en", "de"),
)  # fmt: skip
FORUM = Dust(
    seed=2, host="forum.sim", aliases=("m.forum.sim", "www.forum.sim"), session=Session("parameter", "jsessionid"),
    sessions=3, ignored=(("highlight", ("one", "two", "three", "four")), ("ref", ("top", "side"))),
    index="default.aspx", shuffled=False, matter=("t", "start", "f"), usual=("style", "full", "short"),
    changing_share=0.01, things=80,
)  # fmt: skip
STORE = Dust(
    seed=3, host="store.sim", session=Session("segment", before="(S(", after="))"), sessions=2,
    ignored=(("gclid", tuple(f"Cj0KEQ{n * 7919:08d}x" for n in range(40))), ("view", ("grid", "list")),
    ("fmt", ("p",))),
    index="index.php", shuffled=True, matter=("colour", "size", "page"), articles=80, folders=25, missing=60,
    changing_share=0.01,
)  # fmt: skip
LIBRARY = Dust(
    seed=11, host="library.sim", aliases=("www.library.sim", "mobile.library.sim"),
    articles=120, folders=40, things=120,
    session=Session("segment", before="session_"), sessions=1, links_per_page=5,
    ignored=(("from", ("home", "search", "mail", "map")), ("printable", ("yes",)), ("ver", ("1", "2"))),
    index="welcome.htm", matter=("book", "page", "edition"), usual=("view", "text", "scan"), changing_share=0.004,
)  # fmt: skip
AUCTION = Dust(
    seed=12, host="www.auction.sim", aliases=("auction.sim",), articles=20, folders=15, things=400,
    session=Session("parameter", "tok"), sessions=2, links_per_page=4, shuffled=True,
    ignored=(("fbclid", tuple(f"IwAR{n * 104729:09d}abc" for n in range(25))), ("src", ("a", "b", "c"))),
    index="home.php", matter=("lot", "bid"), missing=80,
)  # fmt: skip


class Hub(Dust):
    """A site whose page `a0.html` changes at every request, and to which all other pages link in several ways."""

    def links(self, name: str, session: str) -> Iterator[str]:
        yield from super().links(name, session)
        for step in range(3):
            yield self._written("a0.html", session, Random(f"{name} {step}"))

    def body(self, name: str, session: str, count: int, view: PageView | None = None) -> bytes:
        return super().body(name, session, count, view) + (f"<p>visitor {count}".encode() if name == "a0.html" else b"")


def hub_of(site: Dust) -> Hub:
    """The same site with such a page."""
    return Hub(**{field.name: getattr(site, field.name) for field in fields(site)})
