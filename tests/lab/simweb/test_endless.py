"""Sites without end as they are made, and a crawl among them."""

from collections import deque
from pathlib import Path
from urllib.parse import urljoin

import pytest

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
    """A calendar and sessions beside three honest sites: after half as many fetches more as there are real pages."""
    cast = Cast(endless=["calendar", "session-in-query"], honest=3)
    settings = {**GENTLE, "store": {"checkpoint_s": 0.5}}
    done = judged(cast, tmp_path, settings, options=["--pages", "900"], patience_s=100, asked_why=False)
    assert done.status == 0, done.complaint
    fetches = [(host, path) for _, host, path in done.ledger if endless.kind_of(host) and path != "/robots.txt"]
    real = 2 * endless.real_pages("calendar") + 3 * endless.real_pages("honest")
    first = {endless.answer(host, path).real for host, path in fetches[: real * 3 // 2]} - {""}
    assert len(first) == real
    assert len(fetches) >= 900, "traps are fetched as well, at the end"
