"""When a crawl is told to stop, and what it says was left out."""

from pathlib import Path

import pytest

from crawl.runs import archived, crawl, fyke, settings
from crawl.small_site import SmallSite, small_site


@pytest.fixture
def site():
    with small_site(pages=200, page_bytes=10_000) as running:
        yield running


def test_bytes(site: SmallSite, tmp_path: Path) -> None:
    """It stops soon after so many bytes, says so, and goes on when it is told of more."""
    into, config = tmp_path / "there", settings(tmp_path, fetch={"connections": 4})
    run = crawl(into, config, site.url, "--bytes", "200kB")
    assert run.status == 0 and run.summary["ending"] == "bytes" and 200_000 <= run.summary["bytes"] < 400_000
    assert "has the bytes that were asked for" in run.errors and "--bytes MORE goes on" in run.errors
    again = crawl(into, config, site.url, "--bytes", "200kB")
    assert again.status == 0 and again.summary["already"] and again.summary["bytes"] == run.summary["bytes"]
    assert "--bytes MORE" in fyke("status", str(into)).stdout
    more = crawl(into, config, site.url, "--bytes", "1GB")
    assert more.status == 0 and more.summary["ending"] == "finished" and len(archived(into)) == 200


@pytest.mark.parametrize("text", ["lots", "-1", "0", "10 GiBs"])
def test_bytes_that_are_none(text: str, tmp_path: Path) -> None:
    run = crawl(tmp_path / "there", settings(tmp_path), "http://127.0.0.1:9/", f"--bytes={text}")
    assert run.status == 2 and run.errors.count("\n") == 1 and "--bytes" in run.errors and "8GB" in run.errors


def test_no_delay_on_ones_own_server(site: SmallSite, tmp_path: Path) -> None:
    slow = {"host_delay_s": 3600.0, "address_delay_s": 3600.0, "delay_factor": 10.0, "min_host_delay_s": 3600.0}
    run = crawl(tmp_path / "there", settings(tmp_path, politeness=slow), site.url, "--delay", "0", "--pages", "20")
    assert run.status == 0 and run.summary["pages"] == 20


def test_what_was_left_out(site: SmallSite, tmp_path: Path) -> None:
    """By which rule, also over a restart."""
    site.answers["/"] = 200, {"Content-Type": "text/html"}, (
        b"<a href=http://elsewhere.example/>x</a><a href=/p150>y</a><a href=/p5>z</a><a href=tel:1>t</a>"
    )  # fmt: skip
    into, config = tmp_path / "there", settings(tmp_path)
    limits = ["--depth", "1", "--deny", "p150$"]
    run = crawl(into, config, site.url, *limits, "--pages", "1")
    assert run.status == 0
    run = crawl(into, config, site.url, *limits, "--pages", "9")
    assert run.status == 0 and run.summary["ending"] == "finished"
    assert run.summary["left_out"] == {"scope host": 1, "depth 1": 2, "deny (?:p150$)": 1}
    assert "1  links left out by scope host" in run.errors
