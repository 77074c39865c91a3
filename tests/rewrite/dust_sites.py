"""Sites that show pages under many URLs: one to tune by, two that were held back."""

from fyke.lab.simweb.dust import Dust, Session

SHOP = Dust(
    seed=1, host="shop.sim", articles=300, folders=60, things=240, out=4,
    aliases=("www.shop.sim",), session=Session("query", "sid"), sessions=1,
    ignored=(("utm_source", ("news", "ad", "mail")), ("print", ("1",))), index="index.html", shuffled=True,
    matter=("id", "part"), usual=("lang", "en", "de"),
)  # fmt: skip
FORUM = Dust(
    seed=2, host="forum.sim", aliases=("m.forum.sim", "www.forum.sim"), session=Session("parameter", "jsessionid"),
    sessions=3, ignored=(("highlight", ("one", "two", "three", "four")), ("ref", ("top", "side"))),
    index="default.aspx", shuffled=False, matter=("t", "start", "f"), usual=("style", "full", "short"), changing=0.01,
    things=80,
)  # fmt: skip
STORE = Dust(
    seed=3, host="store.sim", session=Session("segment", before="(S(", after="))"), sessions=2,
    ignored=(("gclid", tuple(f"Cj0KEQ{n * 7919:08d}x" for n in range(40))), ("view", ("grid", "list")),
    ("fmt", ("p",))),
    index="index.php", shuffled=True, matter=("colour", "size", "page"), articles=80, folders=25, missing=60,
    changing=0.01,
)  # fmt: skip
