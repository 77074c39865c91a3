"""The virtual web: its URLs are real ones, it is a pure function, its sites hold together, its farms never end."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.batches import URLS, numbers, u64
from fyke.core.errors import ConfigurationError
from fyke.core.urls import canonical, locate
from fyke.lab.simulate import texts
from fyke.lab.simulate.servers import VisitEnd
from fyke.lab.simulate.spec import VirtualWebSpec
from fyke.lab.simulate.web import START, VirtualWeb

SPEC = VirtualWebSpec(domains=20_000, giants=5, giant_pages=1_000_000, farms=5, farm_domains=20, spam_host_pages=4)
WEB = VirtualWeb(SPEC)


def column(limit):
    return st.integers(0, limit - 1)


def pages_of(web, count, seed=0):
    """URLs of pages met on a walk from the seeds, honest and spam."""
    rng = np.random.default_rng(seed)
    text = texts.of_column(web.seeds(200).column("url"))
    for _ in range(12):
        links, *_ = web.links_of(text, np.zeros(len(text), np.int64))
        text = texts.of_column(links.take(rng.permutation(links.num_rows)[:count]).column("url"))
    return np.unique(text, axis=0)


def as_urls(text):
    return [row.tobytes().decode() for row in text]


@given(
    st.lists(
        st.tuples(column(texts.MOST_DOMAINS), column(texts.MOST_HOSTS), column(texts.MOST_PAGES)),
        min_size=1,
        max_size=9,
    )
)
def test_a_url_is_canonical_and_its_numbers_and_keys_come_back(pages):
    domain, host, page = (np.array(each, np.int64) for each in zip(*pages, strict=True))
    text = texts.written(domain, host, page)
    assert [each.tolist() for each in texts.read(text)] == [domain.tolist(), host.tolist(), page.tolist()]
    urls = as_urls(text)
    assert [canonical(url) for url in urls] == urls
    keys = zip(
        texts.keys(text).tolist(), texts.host_keys(text).tolist(), texts.domain_keys(domain).tolist(), strict=True
    )
    assert list(keys) == [locate(url)[1:] for url in urls]


def test_links_are_a_url_batch_that_agrees_with_locate():
    text = pages_of(WEB, 100)
    links, sources, spam = WEB.links_of(text, np.arange(len(text)))
    assert links.schema == URLS
    assert links.num_rows == len(sources) == len(text) * SPEC.links_per_page
    assert len({len(url) for url in links.column("url").to_pylist()}) == 1
    assert (spam == (texts.read(texts.of_column(links.column("url")))[0] >= SPEC.domains)).all()
    by_key = {at.key: (at, depth) for depth, at in enumerate(map(locate, as_urls(text)))}
    for row, source in zip(links.to_pylist(), sources.tolist(), strict=True):
        page, depth = by_key[row["via"]]
        at = locate(row["url"].decode())
        assert (row["key"], row["host"], row["domain"]) == at[1:]
        assert (source, row["depth"]) == (page.domain, depth + 1)


def test_the_web_is_a_pure_function_of_spec_and_question():
    again = VirtualWeb(SPEC)
    text = pages_of(WEB, 500)
    depth = np.zeros(len(text), np.int64)
    links, sources, spam = WEB.links_of(text, depth)
    same, same_sources, same_spam = again.links_of(text, depth)
    assert links.equals(same)
    assert (sources == same_sources).all() and (spam == same_spam).all()
    backwards, *_ = again.links_of(np.ascontiguousarray(text[::-1]), depth)
    assert sorted(u64(backwards, "key").tolist()) == sorted(u64(links, "key").tolist())
    assert (WEB.addresses(text) == again.addresses(text)).all()
    for first, second in zip(WEB.answers(text, START), again.answers(text, START), strict=True):
        assert (first == second).all()
    other, *_ = VirtualWeb(VirtualWebSpec(**(asdict(SPEC) | {"seed": 2}))).links_of(text, depth)
    assert not other.equals(links)


def test_every_page_of_a_site_can_be_reached_from_its_home_page():
    domain = int(np.flatnonzero((WEB.domains.pages > 200) & (WEB.domains.pages < 2000))[0])
    size = int(WEB.domains.pages[domain])
    met, fresh = {0}, [0]
    while fresh:
        page = np.array(fresh, np.int64)
        where = np.full_like(page, domain)
        links, *_ = WEB.links_of(texts.written(where, WEB.domains.host_of(where, page), page), np.zeros_like(page))
        domains, hosts, pages = texts.read(texts.of_column(links.column("url")))
        assert (hosts == WEB.domains.host_of(domains, pages)).all()
        assert (pages < np.append(WEB.domains.pages, np.full(SPEC.spam_domains, 2**63))[domains]).all()
        fresh = sorted(set(pages[domains == domain].tolist()) - met)
        met.update(fresh)
    assert met == set(range(size))


def test_popularity_and_sizes_follow_power_laws():
    text = pages_of(WEB, 20_000)
    links, *_ = WEB.links_of(text, np.zeros(len(text), np.int64))
    domain, _, page = texts.read(texts.of_column(links.column("url")))
    homes = np.bincount(domain[(page == 0) & (domain < SPEC.domains)], minlength=SPEC.domains)
    ranks = np.array([10, 30, 100, 300, 1000])  # behind the giants
    heights = [homes[rank : 2 * rank].mean() for rank in ranks]
    slope = np.polyfit(np.log(ranks), np.log(heights), 1)[0]
    assert -1.4 < slope < -0.8
    sizes = np.sort(WEB.domains.pages)[::-1].astype(float)
    assert sizes[:200].sum() > sizes.sum() / 2
    assert np.median(sizes) < 20


def test_every_spam_page_has_pages_and_hosts_never_seen_before():
    domain = np.full(50, SPEC.domains + 7, np.int64)
    page = np.arange(50, dtype=np.int64) * 1_000_003
    text = texts.written(domain, WEB.domains.host_of(domain, page), page)
    links, *_ = WEB.links_of(text, np.zeros(50, np.int64))
    domains, hosts, pages = texts.read(texts.of_column(links.column("url")))
    deep = (domains >= SPEC.domains) & (pages > 0)
    fresh = SPEC.spam_branching + SPEC.spam_cousins
    assert abs(deep.sum() - 50 * fresh) < 50 * 0.1
    assert len(set(zip(domains[deep], pages[deep], strict=True))) > 49 * fresh
    assert len(set(zip(domains[deep], hosts[deep], strict=True))) >= 100, "brothers share a host"
    farm = domains[domains >= SPEC.domains]
    assert farm.min() >= SPEC.domains and farm.max() < SPEC.domains + SPEC.farm_domains, "its own farm"


def test_some_servers_are_dead_some_weary_for_a_while_some_slow():
    domain = np.arange(SPEC.domains, dtype=np.int64)
    nothing = np.zeros_like(domain)
    text = texts.written(domain, nothing, nothing)
    first, later = WEB.answers(text, START), WEB.answers(text, START + SPEC.weary_s)
    share = np.bincount(first.end, minlength=3) / len(domain)
    assert share[VisitEnd.DEAD] == pytest.approx(SPEC.dead_share, rel=0.3)
    assert share[VisitEnd.WEARY] == pytest.approx(SPEC.weary_share, rel=0.3)
    assert not (later.end == VisitEnd.WEARY).any()
    assert ((first.end == VisitEnd.DEAD) == (later.end == VisitEnd.DEAD)).all()
    assert np.median(later.duration_s) == pytest.approx(SPEC.download_s, rel=0.1)
    assert (later.duration_s > 2).mean() == pytest.approx(SPEC.slow_share, rel=0.4)


def test_thousands_of_hosts_share_an_address():
    domain = np.arange(SPEC.domains, dtype=np.int64)
    text = texts.written(domain, np.zeros_like(domain), np.zeros_like(domain))
    sharing = np.unique(WEB.addresses(text), return_counts=True)[1]
    assert sharing.max() > 500
    assert (sharing == 1).any()
    giant = np.full(1000, WEB.domains.giants[0], np.int64)
    hosts = np.arange(1000, dtype=np.int64)
    assert len(set(WEB.addresses(texts.written(giant, hosts, hosts)).tolist())) == 64


def test_memory_is_a_few_bytes_a_domain():
    assert WEB.nbytes <= 24 * SPEC.all_domains


def test_a_column_of_text_can_be_a_slice():
    links = WEB.seeds(50).slice(10, 20)
    assert as_urls(texts.of_column(links.column("url"))) == [url.decode() for url in links.column("url").to_pylist()]
    assert texts.of_column(links.slice(0, 0).column("url")).shape == (0, texts.URL_BYTES)
    assert (numbers(links, "tries") == 0).all()


def test_a_web_that_cannot_be_is_refused():
    with pytest.raises(ConfigurationError, match="too few"):
        VirtualWebSpec(links_per_page=4)
    with pytest.raises(ConfigurationError, match="domains"):
        VirtualWebSpec(domains=10**9)
