"""Small webs that change: pages that move, go, come back, are copied, and say noindex."""

from random import Random

from search.archives import Answer, html

WORDS = [
    "river", "lantern", "orchard", "copper", "violet", "thunder", "meadow", "harbour", "whisper", "ember", "falcon",
    "marble", "willow", "saffron", "glacier", "compass", "anchor", "velvet", "cinder", "prairie",
]  # fmt: skip


def history(seed: int, visits: int, pages: int = 14) -> list[tuple[str, Answer]]:
    """Visits to the pages of three hosts; each a function of `seed`."""
    dice = Random(seed)
    addresses = [f"http://{host}.example/{path}" for host in ("a", "b.a", "www.c") for path in _paths(pages // 3 + 1)]
    return [(dice.choice(addresses), _answer(dice, addresses)) for _ in range(visits)]


def _paths(count: int) -> list[str]:
    return ["", *(f"{'deep/' * (n % 3)}page-{n}.html" for n in range(1, count))]


def _answer(dice: Random, addresses: list[str]) -> Answer:
    kind = dice.choices(("page", "copy", "gone", "moved", "hidden", "broken", "plain"), (12, 3, 2, 2, 1, 1, 1))[0]
    if kind == "gone":
        return Answer("gone", dice.choice((404, 410)))
    if kind == "moved":
        return Answer("", 301, {"Location": dice.choice(addresses)})
    if kind == "broken":
        return Answer("sorry", 500)
    if kind == "plain":
        return Answer(_text(dice), headers={"Content-Type": "text/plain"})
    if kind == "copy":
        return html("copy", WORDS[dice.randrange(3)] * 3)
    head = '<meta name="robots" content="noindex">' if kind == "hidden" else ""
    links = {dice.choice(addresses): " ".join(dice.choices(WORDS, k=2)) for _ in range(dice.randrange(6))}
    return html(" ".join(dice.choices(WORDS, k=3)), _text(dice), links, head)


def _text(dice: Random) -> str:
    return " ".join(dice.choices(WORDS, k=60))
