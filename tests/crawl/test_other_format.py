"""A crawl whose checkpoints have another format is refused in a line by every command, and stays as it is."""

from pathlib import Path

import pytest

from commands import in_process
from crawl.runs import crawl, settings
from crawl.small_site import small_site
from fyke.archive.directory import CrawlDirectory
from fyke.core.errors import OtherVersion
from fyke.crawl.repair import repair
from fyke.disk.manifest import FORMAT
from fyke.disk.sealed import sealed, unsealed
from fyke.serve.shelf import Shelf

COMMANDS = [
    "status DIR",
    "status DIR --json",
    "why DIR URL",
    "check DIR",
    "check --repair DIR",
    "crawl --into DIR",
    "crawl --into DIR --pages 9",
    "crawl --into DIR --again",
    "crawl --into DIR --revisit",
    "crawl --into DIR --agents 2",
    "crawl --into DIR --seeds LIST",
    "crawl URL --into OTHER --seeds DIR",
    "index DIR",
    "search DIR words",
    "search OTHER words --also DIR",
    "report DIR",
    "links DIR",
    "rewrite DIR",
    "export DIR --to csv",
    "export DIR --to wacz",
    "extract DIR",
    "copy DIR OTHER",
    "move DIR OTHER",
    "block DIR 127.0.0.1",
    "unblock DIR 127.0.0.1",
    "cloak DIR --as Mozilla/5.0",
    "serve DIR",
]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize("format", [FORMAT - 1, FORMAT + 1])
def test_a_crawl_with_checkpoints_of_another_format(tmp_path: Path, format: int) -> None:
    into, other, listed = tmp_path / "crawl", tmp_path / "other", tmp_path / "list"
    with small_site(pages=3) as site:
        assert crawl(into, settings(tmp_path), site.url).status == 0
        assert in_process("index", str(into)).status == 0
        listed.write_text(f"{site.url}\n")
        for path in [path for path in into.glob("state/*/manifest-*.json") if path.stat().st_size]:
            path.write_bytes(sealed("manifest", unsealed("manifest", path.read_bytes()) | {"format": format}))
        before, asked = everything(into), len(site.asked)
        named = {"DIR": str(into), "OTHER": str(other), "LIST": str(listed), "URL": site.url}
        for command in COMMANDS:
            said = in_process(*(named.get(word, word) for word in command.split()))
            assert said.status == (2 if command.endswith("--seeds DIR") else 3), (command, said)
            (line,) = said.errors.splitlines()
            assert line.startswith("fyke: ") and not said.out, (command, said)
            assert f"has format {format}, this Fyke reads {FORMAT}: " in line and "warc/" in line, (command, said)
            assert everything(into) == before, command
            assert not other.exists(), command
        for opens in (lambda: [*repair(CrawlDirectory(into), lambda *_: None)], lambda: Shelf([into])):
            with pytest.raises(OtherVersion):
                opens()
        assert len(site.asked) == asked and everything(into) == before
