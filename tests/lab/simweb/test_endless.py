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
    """Sites that answer at once and never end, beside some that take their time: without a guard the former are asked
    ten times as often as it takes to know them."""
    cast = Cast(endless=["calendar", "facets"], honest=3, pause_s=0.05)
    done = judged(cast, tmp_path, GENTLE, options=["--pages", "900"], patience_s=100, asked_why=False)
    assert done.status == 0, done.complaint
    paths = [(host, path) for _, host, path in done.ledger if endless.kind_of(host) and path != "/robots.txt"]
    fetches = [endless.answer(host, path).real for host, path in paths]
    real = 2 * endless.real_pages("calendar") + 3 * endless.real_pages("honest")
    last = max(fetches.index(name) for name in set(fetches) - {""})
    assert len(set(fetches) - {""}) == real
    assert last < 2 * real
    assert len(fetches) > 890, "traps are fetched as well, at the end"
