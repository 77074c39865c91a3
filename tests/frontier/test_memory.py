"""Memory is what the settings say, however many URLs of however few domains come."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np

from fyke.core.batches import url_batch
from fyke.core.config import CrawlSection, FrontierSection, Scope
from fyke.core.messages import Links
from fyke.core.slices import whole
from fyke.core.urls import locate
from fyke.disk.checkpoint import Checkpoint
from fyke.frontier.filters import filters_for
from fyke.frontier.frontier import Frontier

DOMAINS, BATCH = 20, 2000


def peaks(directory: Path, batches: int, stretches: int) -> list[int]:
    """Bytes at most in each of `stretches` stretches of `batches` batches, of nothing but new URLs."""
    filters = filters_for(CrawlSection(scope=Scope.WEB), [], ("http",), [])
    config = FrontierSection(table_memory_bytes=1 << 19)
    found = []
    with Checkpoint(directory) as checkpoint:
        frontier = Frontier(
            checkpoint.store, config, filters, by_level=False, host_delay_s=0.0, few_visits=0, opened_at=0.0
        )
        tracemalloc.start(1)
        for number in range(batches * stretches):
            first = number * BATCH
            urls = [locate(f"http://www.d{n % DOMAINS}.example/{n}") for n in range(first, first + BATCH)]
            frontier.put_links(Links(url_batch(urls), np.zeros(BATCH, np.uint64)))
            whole(frontier.steps(0.0, may_merge=False))
            if (number + 1) % batches == 0:
                found.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.reset_peak()
        tracemalloc.stop()
        frontier.close()
    return found


def test_memory_does_not_grow_with_the_urls_of_a_few_domains(tmp_path):
    """They all wait for the same few records, and a merge of the URLs seen lets go of ever more of them at a time."""
    alone = [sys.executable, __file__, str(tmp_path)]  # a process in which nothing else allocates
    found = json.loads(subprocess.run(alone, capture_output=True, check=True).stdout)
    assert max(found[5:]) < 1.2 * max(found[:5]), found


if __name__ == "__main__":
    print(json.dumps(peaks(Path(sys.argv[1]), 15, 12)))
