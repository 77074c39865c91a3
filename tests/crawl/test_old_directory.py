"""A crawl that an earlier version began goes on with this one.

`tests/data/crawl-0.1.tar.gz` is the directory of a crawl by version 0.1 of a site of 200 pages, killed after 90
requests.
"""

import tarfile
from pathlib import Path

from crawl.runs import archived, crawl
from crawl.runs import fyke_here as fyke
from crawl.small_site import small_site

OLD = Path(__file__).parents[1] / "data" / "crawl-0.1.tar.gz"


def test_a_crawl_of_version_0_1_goes_on(tmp_path: Path) -> None:
    with tarfile.open(OLD) as packed:
        packed.extractall(tmp_path, filter="data")
    into = tmp_path / "crawl"
    done = fyke("status", str(into))
    assert done.returncode == 0, done.stderr
    assert "goes on" in done.stdout
    waiting = fyke("why", str(into), "http://127.44.7.1:18644/p199")
    assert waiting.returncode == 0, waiting.stderr
    with small_site(200, host="127.44.7.1", port=18644) as site:
        run = crawl(into, into / "fyke.toml")
        assert run.status == 0, run.errors
        assert sorted(archived(into)) == sorted(site.all_urls())
        assert 200 <= len(site.asked) + 89 <= 310  # only what no checkpoint held was fetched again
        again = crawl(into, into / "fyke.toml", "--again")
        assert again.status == 0, again.errors
        assert (again.summary["again"]["unchanged"], again.summary["again"]["new"]) == (200, 0)
    checked = fyke("check", str(into))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert fyke("index", str(into)).returncode == 0
