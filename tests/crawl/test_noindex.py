"""A page that asks not to be indexed is in no export and no search, however it asks, and whenever it began to."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path

from crawl.runs import crawl_here as crawl
from crawl.runs import fyke_here as fyke
from crawl.runs import settings
from crawl.small_site import Answer, small_site
from crawl.test_again import assert_mended_as_it_was

PASSES = 3
# How a page asks at each pass: not at all, in its header, or by a tag.
HISTORIES = ["".join(one) for one in product(".hm", repeat=PASSES)]


def answered(history: str, now: list[int]) -> Answer:
    how = history[now[0]]
    head = {"Content-Type": "text/html"} | ({"X-Robots-Tag": "noindex"} if how == "h" else {})
    tag = "<meta name=Robots content='noindex'>" if how == "m" else ""
    text = f"what {word_of(history)} says at length and in many words. " * 9
    return 200, head, f"<title>{word_of(history)}</title>{tag}<p>{text}".encode()


def word_of(history: str) -> str:
    return "w" + history.replace(".", "o")


def shown(histories: Iterable[str], at: int) -> set[str]:
    return {word_of(history) for history in histories if history[at] == "."}


def changed(at: int) -> Iterator[tuple[str, str]]:
    """The pages that are to be seen since a pass, or are not any more."""
    for number, history in enumerate(HISTORIES):
        was, is_ = (one == "." for one in history[at - 1 : at + 1])
        if was != is_:
            yield str(number), "new" if is_ else "gone"


def test_what_asks_not_to_be_indexed_is_shown_by_none(tmp_path: Path) -> None:
    into, config, now = tmp_path / "crawl", settings(tmp_path), [0]
    with small_site(1) as site:
        names = [f"/{place}/{number}" for place in "ab" for number in range(len(HISTORIES))]  # each page twice
        for name in names:
            site.answers[name] = partial(answered, HISTORIES[int(name[3:])], now)
        links = "".join(f"<a href={name}>x</a>" for name in names)
        site.answers["/"] = 200, {"Content-Type": "text/html"}, links.encode()
        for number in range(PASSES):
            now[0], begun = number, datetime.now(UTC).isoformat()
            assert crawl(into, config, *([site.url] if not number else ["--again"])).status == 0
            for kind in ("jsonl", "markdown"):
                out = tmp_path / f"{number}{'.jsonl' if kind == 'jsonl' else ''}"
                assert fyke("export", str(into), "--to", kind, "--out", str(out)).returncode == 0
                if kind == "jsonl":
                    lines = [json.loads(line) for line in out.read_text().splitlines()]
                    titles = {line["title"] for line in lines}
                    assert not any(line["noindex"] for line in lines)
                else:
                    heads = [path.read_text().split("\n")[2] for path in out.rglob("*.md")]
                    titles = {json.loads(head.removeprefix("title: ")) for head in heads}
                assert titles - {""} == shown(HISTORIES, number)
            if number:
                out, since = tmp_path / f"{number}.changes.jsonl", f"--since={begun}"
                options = ("--to", "jsonl", "--changes", since, "--out", str(out))
                assert fyke("export", str(into), *options).returncode == 0
                changes = [json.loads(line) for line in out.read_text().splitlines()]
                became = {(line["url"].rpartition("/")[2], line["change"]) for line in changes}
                assert became == set(changed(number))
            assert fyke("index", str(into)).returncode == 0
            for history in HISTORIES:
                found = fyke("search", str(into), word_of(history)).returncode == 0
                assert found == (history[number] == ".")
    assert_mended_as_it_was(into)
