"""Two sites that the learner was not tuned to."""

from fyke.lab.simweb.dust import Dust, Session

LIBRARY = Dust(
    seed=11, host="library.sim", aliases=("www.library.sim", "mobile.library.sim"),
    articles=120, folders=40, things=120,
    session=Session("segment", before="session_"), sessions=1, out=5,
    ignored=(("from", ("home", "search", "mail", "map")), ("printable", ("yes",)), ("ver", ("1", "2"))),
    index="welcome.htm", matter=("book", "page", "edition"), usual=("view", "text", "scan"), changing=0.004,
)  # fmt: skip
AUCTION = Dust(
    seed=12, host="www.auction.sim", aliases=("auction.sim",), articles=20, folders=15, things=400,
    session=Session("parameter", "tok"), sessions=2, out=4, shuffled=True,
    ignored=(("fbclid", tuple(f"IwAR{n * 104729:09d}abc" for n in range(25))), ("src", ("a", "b", "c"))),
    index="home.php", matter=("lot", "bid"), missing=80,
)  # fmt: skip
