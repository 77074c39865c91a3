"""What a crawl does among hostile servers, by their own ledger: the rest goes on, and every end has a name."""

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import in_process
from fyke.lab.simweb.hostile import answers, documents, http2, resolving, rules
from fyke.lab.simweb.hostile.judge import GENTLE, HASTE, judged
from fyke.lab.simweb.hostile.script import packed
from fyke.lab.simweb.hostile.servers import BEHAVIOURS, NORMAL, Cast

NORMAL_HOSTS, NORMAL_PAGES = 10, 21

# Some of each kind; the whole table is `benches/hostile.py`.
SOME = [
    "closes-at-once", "resets-at-once", "zeros", "ssh-server", "http-09", "status-words", "close-in-body",
    "head-without-end", "length-negative", "chunk-of-an-exabyte", "chunks-of-one-byte", "gzip-cut", "teapot",
    "link-of-no-relation",
    "leads-to-itself", "leads-on-without-end", "leads-to-metadata", "leads-to-this-machine", "leads-to-a-long-url",
    "rests-for-a-day", "throttles-for-an-hour", "rules-forbid-all", "rules-resting", "rules-of-wildcards",
    "delay-of-31-years", "gopher-with-escapes", "ftp-refuses", "tags-a-million-deep", "attributes-by-the-thousand",
    "xml-billion-laughs", "xml-doctype-comments", "charset-utf-7", "name-nowhere", "name-fails", "name-silent",
    "name-private-10", "name-metadata", "name-six-mapped", "name-alias-without-end", "name-malformed", "name-pointers",
    "h2-refuses-each-stream", "h2-goes-away-without-end", "h2-resets-without-end", "h2-pings-without-end",
    "h2-settings-without-end", "h2-window-of-zero", "h2-continues-without-end", "h2-head-of-1-mb", "h2-hpack-bomb",
    "h2-hpack-nonsense", "h2-field-with-newline", "h2-pushes-without-end", "h2-data-of-padding-without-end",
    "h2-is-zeros", "h2-goes-away-with-words", "h2-heads-of-15-kb-without-end", "h2-hpack-tables-without-end",
    "h2-alternatives-without-end", "h2-windows-to-and-fro", "h2-trailers-without-end", "h2-padding-beyond-its-frame",
]  # fmt: skip
RESTING = (
    "rests-", "throttles-", "delay-", "rules-resting",
    "name-fails", "name-silent", "name-alias", "name-malformed", "name-pointers",
)  # fmt: skip


def why(into: Path, url: str) -> str:
    """What the command says became of `url`, asked in this process: others would be busy for minutes with loading."""
    return str(json.loads(in_process("why", str(into), url, "--json").out)["verdict"])


def normal_pages(ledger: list[tuple[float, str, str]]) -> int:
    return len({(host, path) for _, host, path in ledger if host.startswith(NORMAL) and path != "/robots.txt"})


SMALL_WINDOW = {
    **GENTLE,
    "crawl": {"scope": "web", "wait_s": 0.0},
    "frontier": {"window_visits": 100, "host_visits": 50},
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["rests-for-an-hour", "delay-of-a-day"])
def test_who_rests_keeps_nobody_else_waiting(tmp_path: Path, name: str) -> None:
    """Their visits would fill the window many times over; each is asked as often as it may be, and no more."""
    cast = Cast([name], 20, 60, NORMAL_HOSTS, NORMAL_PAGES)
    done = judged(cast, tmp_path, SMALL_WINDOW, options=["--for", "150s"], patience_s=200, ask=None)
    assert done.status == 0, done.complaint
    assert normal_pages(done.ledger) == NORMAL_HOSTS * NORMAL_PAGES
    asked = [host for _, host, path in done.ledger if host.startswith(name) and path != "/robots.txt"]
    assert len(asked) == len(set(asked)), "a host that asked for an hour was asked again"
    assert done.ending == "resting"


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("name", "hosts", "settings"),
    [("all-is-slow", 60, {**GENTLE, "fetch": {"connections": 8}}), ("name-silent", 300, SMALL_WINDOW)],
)
def test_who_is_slow_keeps_nobody_else_waiting(
    tmp_path: Path, name: str, hosts: int, settings: Mapping[str, Mapping[str, Any]]
) -> None:
    """Many more than there are connections, or places in the window; none would end before the crawl does."""
    cast = Cast([name], hosts, 1, NORMAL_HOSTS, NORMAL_PAGES)
    all_pages = NORMAL_HOSTS * NORMAL_PAGES
    done = judged(
        cast, tmp_path, settings, options=["--for", "40s"], patience_s=200, ask=None,
        enough=lambda servers: normal_pages(servers.ledger()) == all_pages,
    )  # fmt: skip
    assert done.status == 0, done.complaint
    assert normal_pages(done.ledger) == all_pages


@pytest.mark.timeout(400)
def test_every_end_has_a_name(tmp_path: Path) -> None:
    """All at once, beside normal sites: no crash, no hang, no page of the others lost, bounded memory."""
    done = judged(
        Cast(SOME, 1, 1, NORMAL_HOSTS, NORMAL_PAGES),
        tmp_path,
        HASTE,
        options=["--for", "60s"],
        patience_s=180,
        ask=why,
    )
    assert done.status == 0, done.complaint
    assert normal_pages(done.ledger) == NORMAL_HOSTS * NORMAL_PAGES
    assert done.peak_mb < 400
    for name, verdict in done.verdicts.items():
        named = verdict.startswith(("fetched", "failed", "refused"))
        why_it_waits = "last seen of its host: " in verdict or name.startswith("delay-")
        waits = verdict.startswith("waiting") and name.startswith(RESTING) and why_it_waits
        assert named or waits or "leads" in name, f"{name}: {verdict}"
        assert "\x1b" not in verdict


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name", ["name-private-10", "name-nowhere", "rules-of-500-kb", "rules-of-agents", "rules-by-the-thousand"]
)
def test_who_is_all_there_is_left_is_waited_for(tmp_path: Path, name: str) -> None:
    """However short a rest is waited for: rules that are being read are no rest, nor is an answer nobody looked at."""
    patient = {**HASTE, "crawl": {**HASTE["crawl"], "wait_s": 0.5}}
    done = judged(Cast([name]), tmp_path, patient, options=["--for", "30s"], patience_s=90, ask=why)
    assert done.ending == "finished", done.verdicts
    assert done.verdicts[name].startswith(("fetched", "failed", "refused"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    ["xml-gzip-of-50-mb", "body-without-end", "links-all-the-same", "gzip-within-all-limits", "h2-data-without-end"],
)
def test_memory_is_bounded_whatever_comes(tmp_path: Path, name: str) -> None:
    done = judged(Cast([name]), tmp_path, HASTE, options=["--for", "30s"], patience_s=200, ask=why)
    assert done.status == 0, done.complaint
    assert done.peak_mb < 400
    assert done.verdicts[name].startswith("fetched")


@pytest.mark.timeout(200)
def test_frames_that_hold_nothing_hold_nobody_up(tmp_path: Path) -> None:
    """libcurl would not return from reading them until the server counts as stalled."""
    names = ["h2-goes-away-without-end", "h2-window-updates-without-end", "h2-data-of-padding-without-end"]
    patient = {**HASTE, "fetch": {**HASTE["fetch"], "timeout_s": 60.0, "stall_s": 50}}
    done = judged(Cast(names), tmp_path, patient, options=["--for", "40s"], patience_s=150, ask=why)
    assert done.ending == "finished", "it waited until they stalled"
    assert all("keeps sending, but no answer" in verdict for verdict in done.verdicts.values()), done.verdicts


@pytest.mark.timeout(120)
def test_what_came_of_a_page_that_breaks_off_is_kept(tmp_path: Path) -> None:
    """By HTTP/1.1 and HTTP/2, with a length or in chunks."""
    names = ["close-in-body", "chunks-without-last", "h2-resets-in-body"]
    done = judged(Cast(names), tmp_path, HASTE, options=["--for", "60s"], patience_s=90, ask=why)
    assert done.ending == "finished", done.verdicts
    assert all(": incomplete, status 200" in verdict for verdict in done.verdicts.values()), done.verdicts


@pytest.mark.timeout(120)
def test_a_stream_that_is_refused_for_ever_is_asked_for_as_often_as_tries_say(tmp_path: Path) -> None:
    """libcurl would ask again at once, without end; one that was refused on a kept connection is asked anew once."""
    names = [
        name for name in BEHAVIOURS if name.startswith(("h2-refuses", "h2-goes-away", "h2-asks-for", "h2-resets-e"))
    ]
    done = judged(Cast(names), tmp_path, HASTE, options=["--for", "40s"], patience_s=100, ask=why)
    for name in names:
        pages = [path for _, host, path in done.ledger if host.startswith(name) and path != "/robots.txt"]
        assert 0 < len(pages) <= 2 * HASTE["politeness"]["tries"], name
        assert done.verdicts[name].startswith("failed"), done.verdicts[name]


@pytest.mark.timeout(120)
def test_what_leads_on_is_followed(tmp_path: Path) -> None:
    """Else a trap that is played badly would be one that no crawler falls into."""
    names = [name for name in BEHAVIOURS if name.startswith(("trap-of-", "leads-on-by-page", "frames-of-itself"))]
    done = judged(Cast(names), tmp_path, HASTE, options=["--for", "8s"], patience_s=100, ask=why)
    assert done.status == 0, done.complaint
    for name in names:
        assert done.verdicts[name].endswith("ok, status 200"), done.verdicts[name]
        asked = {(host, path) for _, host, path in done.ledger if f"{name}.hostile" in host}
        assert len(asked) > 10, f"{name}: {done.verdicts[name]}"


@given(st.binary(max_size=2000), st.integers(0, 50), st.binary(max_size=2000))
def test_what_is_packed_a_piece_at_a_time_is_gzip(piece: bytes, times: int, first: bytes) -> None:
    assert gzip.decompress(packed(piece, times, first)) == first + piece * times


def test_no_two_behaviours_have_one_name() -> None:
    assert len(BEHAVIOURS) == sum(len(table.BEHAVIOURS) for table in (answers, documents, http2, resolving, rules))


def test_the_security_page_says_how_many_there_are() -> None:
    page = (Path(__file__).parents[3] / "SECURITY.md").read_text()
    said = re.findall(r"(\d+) (?:named\s)?behaviours", page)
    assert said and set(map(int, said)) == {len(BEHAVIOURS)}
