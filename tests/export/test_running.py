"""Export and report beside a crawl that runs: only what a checkpoint holds, and that whole."""

import threading
import time
import zipfile
from io import BytesIO
from pathlib import Path

from fastwarc.warc import ArchiveIterator

from crawl.runs import FAST, begin, settings
from crawl.small_site import small_site
from export.crawls import ALL, contents, exported, lines
from fyke.archive.arrivals import safe_rows


def test_beside_a_crawl(tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    patient = {"timeout_s": 120.0, "stall_s": 120}  # exports take long on a busy machine
    config = settings(tmp_path, politeness=FAST, fetch=patient, store={"checkpoint_s": 0.2, "table_rows": 4})
    with small_site(pages=40) as site:
        gate = site.hang["/p25"] = threading.Event()
        crawl = begin(into, config, site.url)
        assert site.hanging.wait(20)
        end = time.monotonic() + 20
        while not (into / "tables").is_dir() or safe_rows(into, "pages") < 20:
            assert time.monotonic() < end
            time.sleep(0.05)
        out = {
            to: tmp_path / f"x{'.jsonl' * (to == 'jsonl')}{'.wacz' * (to == 'wacz')}{'.csv' * (to == 'csv')}"
            for to in ALL
        }
        rows = safe_rows(into, "pages")
        entries = list(lines(exported(into, "jsonl", out["jsonl"])))
        assert rows - 1 <= len(entries) <= 40 and len({entry["url"] for entry in entries}) == len(entries)
        with zipfile.ZipFile(exported(into, "wacz", out["wacz"])) as bundle:
            (name,) = [name for name in bundle.namelist() if name.startswith("archive/")]
            found = [record.headers["WARC-Type"] for record in ArchiveIterator(BytesIO(bundle.read(name)))]
        assert found.count("response") == found.count("request") >= rows
        assert contents(exported(into, "csv", out["csv"]))["x.csv"].count(b"\n") >= rows
        assert crawl.poll() is None
        gate.set()
        assert crawl.wait(20) == 0
