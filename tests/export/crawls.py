"""Crawls to export: one of the synthetic web, and archives made to order."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from crawl.runs import crawl, settings
from fyke.export import Format, export
from fyke.lab.simweb import lively, running_web

ALL = ("parquet", "jsonl", "markdown", "wacz", "links", "csv")


def crawled(folder: Path) -> Path:
    """A crawl of a lively synthetic web, in several files of each kind."""
    with running_web(lively(pages=220, hosts=14, crawl_delay_s=0.1)) as web:
        store = {"warc_bytes": 300_000, "table_rows": 90, "checkpoint_s": 1.0}
        run = crawl(folder / "crawl", settings(folder, web, store=store), *web.seeds, "--scope", "web")
        assert run.status == 0, run.errors
    return folder / "crawl"


def exported(crawl: Path, to: str, out: Path, *, everything: bool = False, part_rows: int = 0) -> Path:
    """Export `crawl` to `out`; nothing but the target is left."""
    done = export(crawl, Format(to), out, Console(file=io.StringIO()), everything=everything, part_rows=part_rows)
    assert done.path == out and not out.with_name(out.name + ".part").exists()
    return out


EXPORTING = """
import sys
from pathlib import Path
from rich.console import Console
from fyke.export import Format, export
crawl, to, out, part_rows = sys.argv[1:]
export(Path(crawl), Format(to), Path(out), Console(), everything=False, part_rows=int(part_rows))
"""


def killed_after_a_part(crawl: Path, to: str, out: Path, part_rows: int) -> dict[str, object]:
    """Export `crawl` in a process of its own until it has noted some progress; kill it; what it had noted."""
    arguments = [sys.executable, "-c", EXPORTING, str(crawl), to, str(out), str(part_rows)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    progress = out.with_name(f"{out.name}.part") / "progress.json"
    while process.poll() is None:
        if progress.exists() and json.loads(progress.read_text())["mark"][0] > 0:
            break
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    found: dict[str, object] = json.loads(progress.read_text())
    return found


def contents(path: Path) -> dict[str, bytes]:
    """Every file of an export, by its name."""
    if path.is_file():
        return {path.name: path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def lines(path: Path) -> Iterator[dict[str, object]]:
    """The objects of a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
