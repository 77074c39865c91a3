"""Sites without end as they are made, and a crawl among them."""

import re
from collections import deque
from pathlib import Path
from urllib.parse import urljoin

import pytest

from crawl.runs import archived, fyke
from fyke.archive.warc_reading import read_records
from fyke.lab.simweb.hostile import endless
from fyke.lab.simweb.hostile.judge import GENTLE, judged
from fyke.lab.simweb.hostile.servers import Cast

SITES = [*(f"honest-{number}.hostile" for number in range(5)), *endless.hosts_of(endless.TRAPS, 0)]


@pytest.mark.parametrize("host", SITES)
def test_a_site_has_the_real_pages_it_says_and_a_trap_many_others(host: str) -> None:
    met, waiting, real, fetched = {"/"}, deque(["/"]), set(), 0
    while waiting and fetched < 1500:
        path = waiting.popleft()
        fetched += 1
        made = endless.answer(host, path)
        assert made == endless.answer(host, path)
        real |= {made.real} - {""}
        for link in made.links:
            target = urljoin(f"http://{host}{path}", link.replace("%PORT%", ""))
            if target.startswith(f"http://{host}/") and (target := target[len(host) + 7 :]) not in met:
                met.add(target)
                waiting.append(target)
    assert len(real) == endless.real_pages(endless.kind_of(host))
    assert bool(waiting) == (not host.startswith(("honest", "hosts")))


@pytest.mark.timeout(200)
def test_a_crawl_fetches_what_is_real_before_it_goes_into_traps(tmp_path: Path) -> None:
    """Sites that answer at once and never end, beside some that take their time: without a guard the former are asked
    ten times as often as it takes to know them."""
    cast = Cast(endless_kinds=["calendar", "facets"], honest=3, pause_s=0.05)
    done = judged(cast, tmp_path, GENTLE, options=["--pages", "900"], patience_s=100, ask=None)
    assert done.status == 0, done.complaint
    paths = [(host, path) for _, host, path in done.ledger if endless.kind_of(host) and path != "/robots.txt"]
    fetches = [endless.answer(host, path).real for host, path in paths]
    real = 2 * endless.real_pages("calendar") + 3 * endless.real_pages("honest")
    last = max(fetches.index(name) for name in set(fetches) - {""})
    assert len(set(fetches) - {""}) == real
    assert last < 2 * real
    assert len(fetches) > 890, "traps are fetched as well, at the end"


@pytest.mark.timeout(200)
def test_links_that_only_lead_to_others_wait_and_those_that_lead_to_pages_do_not(tmp_path: Path) -> None:
    cast = Cast(endless_kinds=["redirecting", "moved"], honest=3, pause_s=0.02)
    done = judged(cast, tmp_path, GENTLE, options=["--pages", "1000"], patience_s=100, ask=None)
    assert done.status == 0, done.complaint
    paths = [(host, path) for _, host, path in done.ledger if endless.kind_of(host) and path != "/robots.txt"]
    reals = [endless.answer(host, path).real for host, path in paths]
    last = max(reals.index(name) for name in set(reals) - {""})
    assert len(set(reals) - {""}) == sum(map(endless.real_pages, ("redirecting", "moved"))) + 3 * 101
    assert reals[:last].count("") < 100, "of fourteen hundred that there is time for"


@pytest.mark.parametrize("agents", ["1", "2"])
def test_who_makes_pages_up_is_found_out_and_what_was_asked_on_purpose_is_no_page(tmp_path: Path, agents: str) -> None:
    """The archive has it; no table, no check and no repair takes it for a page; nor is it asked for where a person
    does not want it. Hosts rest, so that how many are asked for is not a matter of how fast this machine is."""
    cast = Cast(endless_kinds=["made-up-numbers", "suggesting"], honest=3, pause_s=0.04)
    rest = {"politeness": {**GENTLE["politeness"], "host_delay_s": 0.01}}
    options, settings = ["--pages", "700", "--agents", agents], {**GENTLE, **rest, "frontier": {"probes": True}}
    done = judged(cast, tmp_path, settings, options=options, patience_s=100, ask=None)
    assert done.status == 0, done.complaint
    probes = {(host, path) for _, host, path in done.ledger if re.search(r"\d{12}", path)}
    assert 3 <= len(probes) <= 9 and {host for host, _ in probes} == {"made-up-numbers-0.hostile"}
    paths = [(host, path) for _, host, path in done.ledger if path != "/robots.txt"]
    made_up = [host for host, path in paths if host.startswith("made-up") and not endless.answer(host, path).real]
    last = max(at for at, (host, path) in enumerate(paths) if host.startswith(("honest", "suggesting")))
    before = sum(host.startswith("made-up") for host, _ in paths[:last])
    if agents == "1":  # of several, one may have nothing else left
        assert before < 120 and len(made_up) > 200, "a host is found out after some fifty"
    crawl = tmp_path / "crawl"
    held = [record.get("warc-target-uri") for path in crawl.glob("warc/*.warc.gz") for record in read_records(path)]
    assert all(any(url.endswith(path) for url in held) for _, path in probes)
    path = max(path for _, path in probes)
    url = next(url for url in held if url.endswith(path))
    assert "fyke made this URL up" in fyke("why", str(crawl), url).stdout
    for path in crawl.glob("tables/pages-*"):  # so that the archive alone says what there is
        path.unlink()
    pages = archived(crawl)
    assert fyke("check", "--repair", str(crawl)).returncode == 0
    again = archived(crawl)
    assert len(again) > 600 and not pages
    assert not [url for url in again for _, path in probes if url.endswith(path)]
    assert fyke("check", str(crawl)).returncode == 0


def test_nobody_is_asked_for_what_cannot_be_there_unless_wanted(tmp_path: Path) -> None:
    cast = Cast(endless_kinds=["made-up-numbers"], honest=0)
    done = judged(cast, tmp_path, GENTLE, options=["--pages", "300"], patience_s=100, ask=None)
    assert done.status == 0, done.complaint
    assert len(done.ledger) > 300 and not [path for _, _, path in done.ledger if re.search(r"\d{12}", path)]


@pytest.mark.timeout(200)
def test_of_a_domain_with_a_host_for_every_name_few_are_begun_before_it_is_known(tmp_path: Path) -> None:
    """Each costs its robots.txt and a page; what is real beside it is fetched first."""
    cast = Cast(endless_kinds=["hosts"], honest=5, pause_s=0.02)
    done = judged(cast, tmp_path, GENTLE, options=["--pages", "700"], patience_s=100, ask=None)
    assert done.status == 0, done.complaint
    last = max(at for at, (_, host, _) in enumerate(done.ledger) if host.startswith("honest"))
    names = [host for _, host, _ in done.ledger if host.endswith("hosts-0.hostile")]
    begun = {host for _, host, _ in done.ledger[:last] if host.endswith("hosts-0.hostile")}
    assert len(begun) < 60, "of hundreds that are found, each with six more"
    assert len(set(names)) > 150, "the others are fetched as well, at the end"
