"""Filler: sentences cut once when a web starts, so that writing a page only picks slices.

`bodies` calls it. Invariant: the pools depend on the seed and the wanted page size alone. Bounded: a few megabytes.
"""

import random

from fyke.lab.simweb.kinds import Charset

_WORD_LIST = (
    "river net current water tide harbour boat fisher catch salmon eel trout weir hoop rope knot mesh stone bank "
    "ford bridge mill wheel marsh reed heron otter island lake spring delta stream flood ebb shore sand gravel "
    "anchor sail mast oar pilot chart compass lantern beacon pier quay crane barrel salt smoke market price trade "
    "guild ledger letter stamp coin weight measure winter summer morning evening storm wind rain frost thaw mist "
    "village town road gate wall tower church school garden orchard field meadow forest hill valley path well "
    "story song record memory history order number table index page book library archive map name list"
)
WORDS = tuple(_WORD_LIST.split())
SAMPLES = {
    Charset.UTF_8: "Größe, naïveté, Ærø, 網, сеть, δίχτυ",
    Charset.WINDOWS_1252: "Déjà vu à Zürich: “smörgåsbord” – 5 €",
    Charset.SHIFT_JIS: "川の中で網はいつも立っている。魚が泳ぐ。",
    Charset.EUC_KR: "강물 속에 그물이 서 있다. 물고기가 헤엄친다.",
    Charset.GB18030: "河里的网日夜立着，鱼游过。",
    Charset.KOI8_R: "Сеть стоит в реке днём и ночью, рыба плывёт.",
    Charset.UTF_16: "Сеть 網 그물 réseau",
}
POOL_BYTES = 1 << 19
SIZES = (0.5, 0.75, 1.0, 1.25, 1.5)  # of the mean size of a page, equally likely


class Filler:
    """Pools of paragraphs, one pool for each relative size of page."""

    def __init__(self, seed: int, paragraphs: int, paragraph_bytes: int) -> None:
        chance = random.Random(seed)
        ranks = [1 / (rank + 2) for rank in range(len(WORDS))]
        self._prose = " ".join(chance.choices(WORDS, ranks, k=40_000))
        self.anchors = [" ".join(chance.choices(WORDS, k=2)).encode() for _ in range(1024)]
        self.pools = [self._pool(chance, paragraphs, int(paragraph_bytes * size)) for size in SIZES]

    def _pool(self, chance: random.Random, paragraphs: int, size: int) -> list[bytes]:
        size = max(0, size - len("<p>.</p>\n"))
        count = max(16, min(512, POOL_BYTES // (size + 1)))
        texts = []
        for _ in range(count):
            start = chance.randrange(len(self._prose) - min(size, 60_000) - 1)
            prose = self._prose[start : start + min(size, 60_000)].strip().capitalize()
            prose = (prose + " ") * (size // (len(prose) or 1)) if size > 60_000 else prose
            texts.append(f"<p>{prose}.</p>\n".encode() if size else b" \n")
        return texts * (2 + paragraphs // count)

    def paragraphs(self, draw: int, count: int) -> list[bytes]:
        """Return `count` paragraphs, chosen by `draw`: together about one page of the wanted size."""
        pool = self.pools[draw % len(SIZES)]
        start = (draw >> 8) % (len(pool) - count)
        return pool[start : start + count]
