"""What `deploy/` has works: the commands of the unit and of the container crawl, are scraped, end by SIGTERM with 0,
and go on; the board asks for metrics that there are.
"""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families as families

from crawl.runs import archived, crawl, settings, wait_until
from crawl.small_site import small_site
from fyke.archive.statistics import CrawlStatistics
from fyke.core.errors import ConfigurationError
from fyke.crawl.exporter import address_of
from fyke.metrics import CrawlFigures, exposition
from ports import free_port
from serve.kit import client

DEPLOY = Path(__file__).parents[1] / "deploy"
UNIT = DEPLOY / "fyke@.service"
CONTAINER = (DEPLOY / "Containerfile").read_text()
TOLD = CrawlStatistics(pages=7, outcomes={"ok": 7}, queues={"ready": 3})


def _of_unit(settings_file: Path, into: Path, port: int) -> list[str]:
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)
    return shlex.split(
        line.replace("/etc/fyke/%i.toml", str(settings_file))
        .replace("/var/lib/fyke/%i", str(into))
        .replace("${METRICS}", str(port))
    )


def _of_container(settings_file: Path, into: Path, port: int) -> list[str]:
    entry, command = (
        json.loads(re.findall(rf"^{word} (\[.*\])$", CONTAINER, re.M)[0]) for word in ("ENTRYPOINT", "CMD")
    )
    places = {"/etc/fyke/fyke.toml": str(settings_file), "/data": str(into), "0.0.0.0:9464": f"127.0.0.1:{port}"}
    return [*entry, *(places.get(word, word) for word in command)]


def scraped(port: int) -> dict[str, float]:
    """Values by name and labels but the crawl's."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=15) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    return {
        " ".join([sample.name, *(value for name, value in sample.labels.items() if name != "crawl")]): sample.value
        for family in families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("of", [_of_unit, _of_container])
def test_as_a_service(of, tmp_path: Path) -> None:
    """Started, scraped, stopped as service managers stop; started again, it has every page once and ends by itself."""
    into, port = tmp_path / "there", free_port()
    with small_site(pages=60) as site:
        config = settings(tmp_path, crawl={"seeds": [site.url]}, politeness={"address_delay_s": 0.02})
        words = of(config, into, port)
        assert words[0] == "/opt/fyke/bin/fyke"
        command = [sys.executable, "-m", "fyke", *words[1:]]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: site.asked.total() > 10)
            first = scraped(port)
            assert first["fyke_up"] == 1 and first["fyke_paused"] == 0 and first["fyke_memory_bytes"] > 1e6
            wait_until(lambda: scraped(port)["fyke_pages_total"] > first["fyke_pages_total"])
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"http://127.0.0.1:{port}/", timeout=15)
        finally:
            process.send_signal(signal.SIGTERM)
            errors = process.communicate(timeout=30)[1]
        assert process.returncode == 0 and "goes on where it stopped" in errors, errors
        assert 0 < len(archived(into)) < 60
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        assert sorted(archived(into)) == sorted(site.all_urls())


def test_the_unit_is_one() -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd here")
    done = subprocess.run([tool, "verify", "--man=no", str(UNIT)], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "fyke" in line and "/opt/fyke/bin/fyke" not in line]
    assert not ours, done.stderr


def test_the_board_asks_for_metrics_that_there_are() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [one["query"]["query"] for one in board["templating"]["list"] if isinstance(one["query"], dict)]
    told = {
        sample.name
        for family in families(exposition([CrawlFigures("a", statistics=TOLD)]).decode())
        for sample in family.samples
    }
    named = {name for expression in asked for name in re.findall(r"\bfyke_\w+", expression)}
    assert named <= told, named - told
    assert told - named == {"fyke_told_timestamp_seconds"}  # that is for alerts


def test_text_that_strangers_chose_stays_a_label() -> None:
    name = 'a "crawl"\\ of\nlines} 1'
    told = exposition([CrawlFigures(name, False, True, 9.0, TOLD), CrawlFigures("other")]).decode()
    values = {(s.name, s.labels["crawl"]): s.value for family in families(told) for s in family.samples}
    assert values["fyke_pages_total", name] == 7 and values["fyke_paused", name] == 1 and values["fyke_up", name] == 0
    assert values["fyke_up", "other"] == 1 and values["fyke_pages_total", "other"] == 0
    assert values["fyke_outcomes_total", name] == 7 and values["fyke_queue_urls", name] == 3


def test_serve_tells_the_same(tmp_path: Path) -> None:
    with small_site(pages=5) as site:
        assert crawl(tmp_path / "there", settings(tmp_path), site.url).status == 0
    with client(tmp_path / "there") as ask:
        answer = ask.get("/metrics")
    told = {sample.name: sample.value for family in families(answer.text) for sample in family.samples}
    assert told["fyke_pages_total"] == 5 and told["fyke_up"] == 0 and told.keys() >= {"fyke_outcomes_total"}


@pytest.mark.parametrize("address", ["0", "70000", "x", ":9464", "127.0.0.1:", "9464x"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ConfigurationError, match="--metrics"):
        address_of(address)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with small_site(pages=2) as site:
        run = crawl(tmp_path / "there", settings(tmp_path), site.url, "--metrics", str(site.port))
    assert run.status == 2 and run.errors.count("\n") == 1 and "cannot listen" in run.errors, run.errors
