"""The map: every URL names one thing, bytes repeat, memory does not grow."""

import subprocess
import sys

import ada_url
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from alone import traced
from fyke.lab.simweb import Layout, Ports, Resource, ResourceKind, lively, plain, resource_of
from fyke.lab.simweb.answers import Responder
from fyke.lab.simweb.bodies import Bodies
from fyke.lab.simweb.sloppy import WAYS, Link
from fyke.lab.simweb.spec import WebSpec

PORTS = Ports(8080)
LIVELY = Layout(lively(pages=2000, hosts=50), PORTS)
HUGE = Layout(plain(pages=1_000_000_000, hosts=1000), PORTS)
DATE = "Sat, 01 Jan 2000 00:00:00 GMT"


@given(st.integers(0, 999_999_999))
def test_a_page_of_a_huge_web_is_found_by_its_url(page):
    resource = HUGE.page(page)
    assert resource_of(HUGE, HUGE.url(resource)) == resource
    assert all(0 <= target < 1_000_000_000 for target in HUGE.targets(page))


def every_resource(layout):
    names = layout.names
    for page in range(layout.spec.pages):
        yield layout.page(page)
        for step in range(1, layout.hops(page) + 1):
            yield Resource(ResourceKind.HOP, names.host_of(page), page, step)
        if layout.has_nofollow_link(page):
            yield Resource(ResourceKind.NOFOLLOWED, names.host_of(page), page)
        if layout.only_begins(page):
            yield Resource(ResourceKind.BEGUN, names.host_of(page), page)
    for host in range(names.hosts):
        for kind in (
            ResourceKind.ROBOTS,
            ResourceKind.SITEMAP,
            ResourceKind.FEED,
            ResourceKind.LISTED,
            ResourceKind.FED,
            ResourceKind.MEDIA,
            ResourceKind.TRAP,
        ):
            yield Resource(kind, host)


def test_a_url_names_one_thing():
    urls = {}
    for resource in every_resource(LIVELY):
        found = LIVELY.find(resource.host, LIVELY.target(resource))
        if found is None:
            assert resource.kind in (
                ResourceKind.SITEMAP,
                ResourceKind.FEED,
                ResourceKind.LISTED,
                ResourceKind.FED,
                ResourceKind.TRAP,
            )
            continue
        assert found == resource
        assert urls.setdefault(LIVELY.url(resource), resource) == resource
        assert ada_url.URL(LIVELY.url(resource)).href == LIVELY.url(resource)


def test_what_is_not_there_is_not_found():
    for target in ("/nothing", "/news/99999999.html", "/m/99.png", "/hop/1-9", "/", "/news/0.html", "/trap/x/", ""):
        assert (LIVELY.find(0, target) is not None) == (target == "/")
    assert LIVELY.names.find("h0.d1.sim") is None
    assert LIVELY.names.find("h٣.d0.sim") is None


def test_pages_and_domains_follow_power_laws():
    names = HUGE.names
    sizes = [names.size(host) for host in range(names.hosts)]
    assert sum(sizes) == 1_000_000_000 and min(sizes) >= 1
    assert sizes[0] > 4 * sizes[9] > 16 * sizes[99]
    hosts = sorted((names.domain_of.count(domain) for domain in set(names.domain_of)), reverse=True)
    assert len(hosts) == HUGE.spec.domains and hosts[0] > 5 * hosts[len(hosts) // 2]
    popular = [target for page in range(0, 1_000_000_000, 2_000_003) for target in HUGE.targets(page)]
    assert len(set(popular)) < len(popular)


def test_a_billion_pages_cost_no_memory():
    assert traced(_targets_here_and_there, plain(pages=1_000_000_000, hosts=1000))[1] < 3_000_000


def _targets_here_and_there(spec: WebSpec) -> None:
    layout = Layout(spec, PORTS)
    for page in range(0, spec.pages, 10_000_019):
        layout.targets(page)


def test_bytes_repeat_also_in_another_process():
    program = (
        "import sys, xxhash; from fyke.lab.simweb import *; from fyke.lab.simweb.bodies import Bodies\n"
        "bodies = Bodies(Layout(lively(pages=2000, hosts=50), Ports(8080)))\n"
        "print(xxhash.xxh3_64_hexdigest(b''.join(bodies.page(page).data for page in range(0, 2000, 9))))"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout and len(runs[0].stdout) == 17
    page = 1234
    assert Bodies(LIVELY).page(page) == Bodies(LIVELY).page(page)
    other = Layout(lively(pages=2000, hosts=50, seed=2), PORTS)
    assert Bodies(other).page(page) != Bodies(LIVELY).page(page)


def test_every_way_of_writing_a_link_means_the_same():
    own, pages = LIVELY.page(7), [0, 7, *range(300, 420)]
    for page in pages:
        there = LIVELY.page(page)
        for source in (own, there):
            base = LIVELY.url(source)
            origins = LIVELY.origin(source.host), LIVELY.origin(there.host)
            for way in WAYS:
                for literal in (False, True):
                    link = Link(LIVELY.target(source), *origins, LIVELY.target(there), literal)
                    html = f'<a href="{way(link)}">x</a>'
                    href = LexborHTMLParser(html).css_first("a").attributes["href"]
                    url = ada_url.URL(href, base=base)
                    url.hash = ""
                    found = LIVELY.find(there.host, url.pathname + url.search)
                    assert url.host == ada_url.URL(LIVELY.url(there)).host
                    assert found == there, (way, html, base)


def test_a_plain_page_holds_its_targets_in_order():
    layout = Layout(plain(pages=5000, hosts=30, links_per_page=60, mean_page_bytes=21_000), PORTS)
    bodies = Bodies(layout)
    sizes = []
    for page in range(0, 5000, 7):
        body = bodies.page(page).data
        base = layout.url(layout.page(page))
        hrefs = [node.attributes["href"] for node in LexborHTMLParser(body).css("a[href]")]
        urls = [ada_url.join_url(base, href) for href in hrefs]
        assert urls == [layout.url(layout.page(target)) for target in layout.targets(page)]
        assert len(urls) == 60
        sizes.append(len(body))
    assert 0.9 < sum(sizes) / len(sizes) / 21_000 < 1.1
    assert max(sizes) > 1.5 * min(sizes)


def test_answers_repeat_but_for_faults_that_pass():
    answers = Responder(LIVELY)
    for page in range(0, 2000, 7):
        resource = LIVELY.page(page)
        replies = [answers.reply(resource.host, LIVELY.target(resource), b"gzip, br, deflate", DATE) for _ in range(3)]
        assert replies[1] == replies[2]
        if replies[0].status not in (429, 503):
            assert replies[0] == replies[1]
        else:
            assert replies[1].status == 200
