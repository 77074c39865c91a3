"""Rewriting in use loses nothing: whatever the rules are, whenever the crawl is killed."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agent_laws import processes_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawl.runs import archived, begin, crawl, fyke, wait_until
from crawl.runs import settings as settings_file
from crawl.small_site import small_site
from frontier.shard import Shard
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.division import Division
from fyke.core.batches import Kind, texts, url_batch
from fyke.core.choices import Scope
from fyke.core.config import CrawlSection
from fyke.core.messages import Links
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.rewrite_rules import Rule, Shape, render
from fyke.core.rewriting import Rewriter
from fyke.core.urls import key_of, locate
from fyke.core.visits import Exchange, visit_to
from fyke.crawl.printing import Printing
from fyke.crawl.rewriting import MOST_CONTRADICTIONS, ONE_IN, Rewriting
from fyke.crawl.verdicts import FIRST_TRIALS
from fyke.disk.store import Store
from fyke.explain import why
from fyke.frontier.filters import filters_for
from fyke.lab.simweb.dust import NOTHING, Dust, PageView, Session
from fyke.lab.simweb.dust_server import DustWeb, dust_web
from fyke.rewrite.learner import rules_of_site
from fyke.rewrite.learning import Content
from rewrite.dust_sites import SHOP, hub_of
from rewrite.walking import page_of, walked

SMALL = Dust(
    seed=5, host="small.sim", aliases=("www.small.sim",), articles=30, folders=12, things=40, links_per_page=4,
    session=Session("query", "sid"), sessions=1, ignored=(("print", ("1",)), ("utm", ("a", "b"))), index="index.html",
    shuffled=True, missing=4,
)  # fmt: skip
PAPER = Dust(
    seed=71, host="paper.sim", articles=90, folders=6, things=60, links_per_page=9, matter=("day", "part"), missing=4,
    views=(PageView("first", "print"), PageView("last", "amp"), PageView("query", "plain")),
    ignored=(("utm", ("a", "b")), ("ref", ("top", "side"))),
)  # fmt: skip
DECOY = Rule(shape=Shape.DROP_KEY, host=SMALL.host, key="part")


@cache
def small() -> list[Content]:
    """All URLs of it."""
    return walked(SMALL)


@cache
def right() -> list[Rule]:
    """The rules that are learned of it."""
    return rules_of_site(SMALL.host, small())


def every() -> set[str | None]:
    """Its pages."""
    return pages_of(SMALL, [page.url for page in small()])


@dataclass
class Walk:
    """What a crawler has met and fetched."""

    met: set[str] = field(default_factory=set)
    waiting: list[str] = field(default_factory=list)
    fetched: Counter[str] = field(default_factory=Counter)  # URLs
    printing: Printing = field(default_factory=lambda: Printing([]))

    def follow(self, found: tuple[Links, Links]) -> None:
        for url in (url for links in found for url in texts(links.urls)):
            if url not in self.met:
                self.met.add(url)
                self.waiting.append(url)


def shard_of(folder: Path, rules: Sequence[Rule], site: Dust, deny: Sequence[str] = ()) -> Shard[Rewriting, Walk]:
    def opened(store: Store, saved: Mapping[str, Any]) -> Rewriting:
        return Rewriting(store, rules, filters, 1 << 16, dict(saved))

    first = f"http://{site.host}/"
    filters = filters_for(CrawlSection(scope=Scope.WEB, deny=[*deny]), [locate(first)], ["http"], [])
    return Shard(folder, opened, Walk({first}, [first], printing=Printing(rules)))


def step(shard: Shard[Rewriting, Walk], site: Dust) -> bool:
    """Fetch a page, or look at what is aside; whether there was something to do."""
    walk, rewriting = shard.model, shard.stage
    walk.follow(rewriting.review(idle=not walk.waiting))
    if not walk.waiting:
        return rewriting.needs_review
    url = walk.waiting.pop(0)
    walk.fetched[url] += 1
    visit, name = visit_to(url), page_of(site, url)
    outcome = Outcome.CLIENT_ERROR if name is None else Outcome.OK
    view, _ = site.seen("/" + url.split("/", 3)[3])
    body = b"" if name is None else site.body(name, site.session_of(url), len(walk.fetched), view)
    page = Page(Exchange(visit, outcome, 0.0, 0.0), "text/html", body, fingerprint=key_of(body))
    found = [locate(f"http:{link}") for link in site.links(name, site.session_of(url))] if name is not None else []
    if found:
        links = Links(url_batch(found), np.zeros(len(found), np.uint64))
        walk.follow(rewriting.apply(links))
    printed = shard.model.printing.of(visit, outcome, page)
    if printed is not None:
        rewriting.note_prints(printed)
    return True


def pages_of(site: Dust, urls: Sequence[str]) -> set[str | None]:
    return {page_of(site, url) for url in urls}


@given(
    st.deferred(lambda: st.sets(st.sampled_from(right()))),
    st.lists(st.sampled_from(["save", "kill"]) | st.integers(1, 60), max_size=12),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_is_lost_whenever_it_is_killed(
    tmp_path_factory: pytest.TempPathFactory, rules: set[Rule], events: list[str | int]
) -> None:
    shard = shard_of(tmp_path_factory.mktemp("walk"), sorted(rules, key=lambda rule: rule.name), SMALL)
    shard.save()
    for event in events:
        if event == "save":
            shard.save()
        elif event == "kill":
            shard.restart()
        else:
            for _ in range(int(event)):
                step(shard, SMALL)
    while step(shard, SMALL):
        pass
    shard.save()
    assert pages_of(SMALL, list(shard.model.fetched)) == every()
    rewriter = Rewriter(rules)
    aside = {url for url in counted(shard) if url not in shard.model.fetched}
    assert all(rewriter.rewrite(url).url in shard.model.fetched for url in aside)
    uses = Counter(rule.name for url in counted(shard) for rule in rewriter.rewrite(url).rules)
    assert uses == shard.stage.used, "each URL that was put aside counts once, for each rule that did"
    assert not shard.stage.revoked
    shard.close()


def test_what_is_on_trial_is_not_tried_twice(tmp_path: Path) -> None:
    """A URL that waits aside was met once more, and is fetched as it is; then the queue is gone through."""
    shard = shard_of(tmp_path, [DECOY], SMALL)
    rewriting, found = shard.stage, url_batch([locate(f"http://{SMALL.host}/thing?part=2")])
    rewriting._put_aside(found)
    rewriting.merge_aside()
    rewriting.apply(Links(found, np.zeros(1, np.uint64)))
    assert rewriting.verdicts.pending[DECOY.name] == 1
    rewriting._sought, rewriting._left = {DECOY.name}, 1
    rewriting.review(idle=True)
    assert rewriting.verdicts.pending[DECOY.name] == len(rewriting._trials) == 1
    shard.close()


def counted(shard: Shard[Rewriting, Walk]) -> list[str]:
    """All URLs that are aside, or were."""
    return [url for batch in shard.stage._aside.scan() for url in texts(batch)]


def test_a_wrong_rule_is_revoked_and_what_it_put_aside_is_fetched(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, [*right(), DECOY], SMALL)
    shard.save()
    while step(shard, SMALL):
        pass
    assert DECOY.name in shard.stage.revoked
    assert pages_of(SMALL, list(shard.model.fetched)) == every()
    shard.save()
    shard.restart()
    assert DECOY.name in shard.stage.revoked, "also after a restart"
    fetched = len(shard.model.fetched)
    while step(shard, SMALL):
        pass
    assert len(shard.model.fetched) == fetched
    shard.close()


@pytest.mark.parametrize("seed", range(3))
def test_pages_that_change_at_every_request_revoke_no_rule_that_holds(tmp_path: Path, seed: int) -> None:
    """And one that does not hold is found among them."""
    quiet = replace(SMALL, seed=seed, articles=80, things=120)
    learned = rules_of_site(quiet.host, walked(quiet))
    site = replace(quiet, noise=("token", "advert", "menu"), changing_share=0.008)
    urls = walked(site)
    assert {rule.key for rule in rules_of_site(site.host, urls)} >= {"print", "utm"}
    pages = pages_of(site, [page.url for page in urls])
    for rules in (learned, [*learned, DECOY]):
        shard = shard_of(tmp_path / str(len(rules)), rules, site)
        shard.save()
        while step(shard, site):
            pass
        assert set(shard.stage.revoked) == {rule.name for rule in rules if rule is DECOY}
        assert pages_of(site, list(shard.model.fetched)) == pages
        if DECOY not in rules:
            assert sum(shard.model.fetched.values()) <= 2 * len(pages)
        shard.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_page_that_changes_and_has_many_urls_revokes_no_rule(tmp_path: Path, seed: int) -> None:
    """However often it is tried; it stays under all its URLs, also after a restart."""
    quiet = replace(SMALL, seed=seed, sessions=3)
    rules = rules_of_site(quiet.host, walked(quiet))
    site = hub_of(quiet)
    shard = shard_of(tmp_path, rules, site)
    while step(shard, site):
        pass
    assert not shard.stage.revoked
    fetched = Counter(page_of(site, url) for url in shard.model.fetched)
    every_url = {url for url in shard.model.met if page_of(site, url) == "a0.html"}
    assert fetched["a0.html"] == len(every_url) > MOST_CONTRADICTIONS
    del fetched["a0.html"]
    assert fetched.total() <= 3 * len(fetched) and fetched.keys() | {"a0.html"} == pages_of(site, [*shard.model.met])
    shard.save()
    shard.restart()
    assert not shard.stage._are_wanted(url_batch([locate(f"http://{site.host}/a0.html")]))[0]
    shard.close()


def test_a_suspect_rule_of_which_nothing_is_aside_ends_the_search(tmp_path: Path) -> None:
    """Each time it is looked for, and also after a restart."""
    shard = shard_of(tmp_path, right(), SMALL)
    shard.save()
    while step(shard, SMALL):
        pass
    for _ in range(2):
        shard.stage.verdicts.suspicion["drop-key seldom on small.sim"] = 1.6
        assert sum(1 for _ in takewhile(bool, (step(shard, SMALL) for _ in range(1000)))) < 100
        shard.save()
        shard.restart()
    shard.close()


@pytest.mark.parametrize(
    "wrong",
    [
        Rule(shape=Shape.DROP_KEY, host=PAPER.host, key="day"),
        Rule(shape=Shape.DROP_SEGMENT, host=PAPER.host, key="folder3", place=0),
    ],
)
def test_a_rule_for_views_is_kept_where_pages_hold_them_and_revoked_where_not(tmp_path: Path, wrong: Rule) -> None:
    views = [Rule(shape=Shape.DROP_SEGMENT, host=PAPER.host, key="print", place=0, view=True),
             Rule(shape=Shape.DROP_SEGMENT, host=PAPER.host, key="amp", place=-1, view=True),
             Rule(shape=Shape.DROP_KEY, host=PAPER.host, key="plain", view=True)]  # fmt: skip
    wrong = wrong.model_copy(update={"view": True})
    shard = shard_of(tmp_path, [*views, wrong], PAPER)
    shard.save()
    turns = 0
    while step(shard, PAPER):
        turns += 1
        if turns % 40 == 0 and turns < 1000:
            shard.save()
            shard.restart()  # what pages hold is forgotten
    assert set(shard.stage.revoked) <= {wrong.name}
    assert pages_of(PAPER, list(shard.model.fetched)) >= set(PAPER.pages())
    seen = [PAPER.seen("/" + url.split("/", 3)[3])[0] for url in shard.model.fetched]
    assert sum(view is not None for view in seen) <= 0.3 * sum(shard.stage.used.values())
    shard.close()


def test_a_wrong_rule_that_makes_all_its_urls_one_loses_none(tmp_path: Path) -> None:
    """It is contradicted by one page alone, as often as there are others."""
    site = Dust(seed=4, host="one.sim", articles=20, folders=0, things=60, matter=("p",), links_per_page=4, missing=0)
    shard = shard_of(tmp_path, [Rule(shape=Shape.DROP_KEY, host=site.host, key="p")], site)
    while step(shard, site):
        pass
    assert pages_of(site, list(shard.model.fetched)) >= set(site.pages())
    shard.close()


@pytest.mark.parametrize(
    "session", [Session("query", "sid"), Session("parameter", "jsid"), Session("segment", before="s-")]
)
@pytest.mark.parametrize("aliases", [("www.small.sim",), ("www.small.sim", "new.small.sim")])
def test_a_session_that_is_issued_to_who_has_none_revokes_no_rule(
    tmp_path: Path, session: Session, aliases: tuple[str, ...]
) -> None:
    """Every page that a rule makes is asked for without one, and has another in its links, also to other hosts."""
    site = replace(SMALL, session=session, sessions=3, issues_sessions=True, links_per_page=6, aliases=aliases)
    pages = walked(site)
    rules = rules_of_site(site.host, pages)
    assert any(rule.shape.value.startswith("drop") and rule.key not in ("print", "utm") for rule in rules)
    shard = shard_of(tmp_path, rules, site)
    while step(shard, site):
        pass
    assert not shard.stage.revoked
    assert pages_of(site, list(shard.model.fetched)) == pages_of(site, [page.url for page in pages])
    shard.close()


def test_what_a_rule_made_and_is_not_there_is_fetched_as_it_was(tmp_path: Path) -> None:
    """The session is needed: without it every page but the first is an error."""
    site = Dust(seed=6, host="needs.sim", articles=40, folders=0, things=8, session=Session("segment", before="s-"))
    move = Rule(shape=Shape.HOST, host="needs.sim", to="gone.sim")
    shard = shard_of(tmp_path, [move], site)
    while step(shard, site):
        pass
    assert move.name in shard.stage.revoked
    assert pages_of(site, list(shard.model.fetched)) >= set(site.pages())
    shard.close()


def test_what_a_rule_put_aside_goes_on_where_the_rule_is_taken_out(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, right(), SMALL)
    while step(shard, SMALL):
        pass
    shard.save()
    aside, model = set(counted(shard)), shard.model
    shard.close()
    assert len(aside) > 100
    without = shard_of(tmp_path, [], SMALL)
    without.model = replace(model, printing=Printing([]))
    model = without.model
    while step(without, SMALL):
        pass
    assert aside <= model.fetched.keys()
    without.close()


def test_one_in_a_hundred_is_fetched_as_it_is(tmp_path: Path) -> None:
    rule = Rule(shape=Shape.DROP_KEY, host="a.test", key="sid")
    shard = shard_of(tmp_path, [rule], SMALL)
    urls = [locate(f"http://a.test/p{n}?sid={n}") for n in range(5000)]
    found = shard.stage.apply(Links(url_batch(urls), np.zeros(5000, np.uint64)))
    tried, made = (texts(links.urls) for links in found)
    by_key = {url.url.decode() for url in urls if url.key % ONE_IN == 0}
    assert by_key <= set(tried) and len(tried) <= len(by_key) + FIRST_TRIALS
    assert all("?" in url for url in tried)
    assert set(made) == {f"http://a.test/p{n}" for n in range(5000)}
    shard.stage.merge_aside()
    assert shard.stage.used == {rule.name: 5000 - len(tried)}
    shard.close()


def test_seeds_redirects_and_requisites_stay_as_they_are(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, [Rule(shape=Shape.DROP_KEY, host="a.test", key="sid")], SMALL)
    urls = [locate(f"http://a.test/p{n}?sid={n}") for n in range(3)]
    batch = url_batch(urls, kind=[Kind.SEED, Kind.REQUISITE, Kind.PAGE])
    links = Links(batch, np.zeros(3, np.uint64), fixed=np.array([False, False, True]))
    assert shard.stage.apply(links)[0] is links
    shard.close()


def test_nothing_is_rewritten_to_what_the_filters_refuse(tmp_path: Path) -> None:
    rule = Rule(shape=Shape.DROP_KEY, host="a.test", key="sid")
    shard = shard_of(tmp_path, [rule], SMALL, deny=["/p[0-4]$"])
    urls = [locate(f"http://a.test/p{n}?sid=1") for n in range(10)]
    both = shard.stage.apply(Links(url_batch(urls), np.zeros(10, np.uint64)))
    found = {url for links in both for url in texts(links.urls)}
    assert {f"http://a.test/p{n}?sid=1" for n in range(5)} <= found
    assert found & {f"http://a.test/p{n}" for n in range(10)} == {f"http://a.test/p{n}" for n in range(5, 10)}
    shard.close()


# --- real crawls


def run_settings(folder: Path, web: DustWeb, checkpoint_s: float = 0.2, **more: Mapping[str, Any]) -> Path:
    return settings_file(
        folder, None, dns={"servers": [web.dns], "private": ["sim"]}, crawl={"scope": "domain"},
        fetch={"connections": 16}, store={"checkpoint_s": checkpoint_s}, **more,
    )  # fmt: skip


def test_a_crawl_with_learned_rules_fetches_each_page_and_hardly_more(tmp_path: Path) -> None:
    with dust_web(SHOP) as web:
        config = run_settings(tmp_path, web, checkpoint_s=10.0)  # nobody kills it
        plain, with_rules = tmp_path / "plain", tmp_path / "with"
        assert crawl(plain, config, web.seed).status == 0
        without = sum(web.fetched.values())
        done = fyke("rewrite", str(plain))
        assert done.returncode == 0, done.stderr
        web.asked.clear()
        run = crawl(with_rules, config, web.seed, "--rewrite", str(plain / "rewrite.toml"))
        assert run.status == 0, run.errors
        distinct = len(SHOP.pages()) + SHOP.missing
        assert not web.missed
        assert without > 4 * distinct
        assert (
            sum(web.fetched.values()) <= 1.08 * distinct
        )  # one URL in a hundred of those put aside is tried, by its key
        assert not run.summary["revoked"] and sum(run.summary["rewritten"].values()) > distinct
        page = f"http://shop.sim:{web.port}/a1.html"
        answers = [why(CrawlDirectory(with_rules), f"{page}?{query}") for query in ("print=1", "utm_source=ad")]
        put_aside = [one for one in answers if one.verdict.startswith(f"put aside: rewritten to {page} ")]
        assert all("drop-key" in "".join(one.facts) for one in answers)
        assert put_aside or all("fetched" in one.verdict or "not seen" in one.verdict for one in answers)


def test_a_crawl_that_is_killed_keeps_counts_and_revocations(tmp_path: Path) -> None:
    """A wrong rule among right ones, and `kill -9` again and again."""
    with dust_web(SMALL) as web:
        rules = tmp_path / "rewrite.toml"
        rules.write_text(render([*right(), DECOY]))
        config = run_settings(tmp_path, web, politeness={"host_delay_s": 0.01, "address_delay_s": 0.0})
        into = tmp_path / "crawl"
        arguments = (web.seed, "--rewrite", str(rules))
        counts: list[int] = []
        for _ in range(4):
            before = len(web.asked)
            process = begin(into, config, *arguments)
            while process.poll() is None and len(web.asked) < before + 25:
                time.sleep(0.01)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            process.wait()
            state = saved_state(CrawlDirectory(into).shard).get("rewriting", {})
            counts.append(sum(state.get("used", {}).values()))
        assert counts == sorted(counts)
        run = crawl(into, config, *arguments)
        assert run.status == 0, run.errors
        assert DECOY.name in run.summary["revoked"]
        assert not web.missed
        assert pages_of_web(web, archived(into)) == set(SMALL.pages()) | {NOTHING}
        rules.write_text("")  # a person takes all back: what was put aside is fetched
        last = crawl(into, config, *arguments)
        assert last.status == 0, last.errors
        assert {page.url for page in small()} <= {url.replace(f":{web.port}", "") for url in archived(into)}


@pytest.mark.parametrize(
    "site",
    [PAPER, replace(PAPER, seed=72, shuffled=True, host="www.paper.sim"), replace(PAPER, seed=73, noise=("clock",))],
)
def test_a_crawl_with_learned_rules_for_views_fetches_hardly_any(tmp_path: Path, site: Dust) -> None:
    with dust_web(site) as web:
        config = run_settings(tmp_path, web, checkpoint_s=10.0)
        plain, with_rules = tmp_path / "plain", tmp_path / "with"
        assert crawl(plain, config, web.seed).status == 0
        distinct = len(site.pages()) + site.missing
        assert sum(web.fetched.values()) > 2.5 * distinct
        told = fyke("rewrite", str(plain), "--json")
        assert told.returncode == 0, told.stderr
        views = {rule["key"] for rule in json.loads(told.stdout)["rules"] if rule.get("view")}
        assert views >= {view.name for view in site.views}
        assert views <= {view.name for view in site.views} | ({"utm", "ref"} if site.noise else set())
        web.asked.clear()
        run = crawl(with_rules, config, web.seed, "--rewrite", str(plain / "rewrite.toml"))
        assert run.status == 0, run.errors
        assert not web.missed and not run.summary["revoked"]
        assert sum(web.fetched.values()) <= 1.2 * distinct  # some are tried, by their keys


def pages_of_web(web: DustWeb, urls: Sequence[str]) -> set[str | None]:
    return {web.page_of_url(url) for url in urls}


def test_without_rules_there_is_nothing_of_it(tmp_path: Path) -> None:
    with dust_web(SMALL) as web:
        into = tmp_path / "crawl"
        assert crawl(into, run_settings(tmp_path, web), web.seed, "--pages", "20").status == 0
    assert "rewriting" not in saved_state(CrawlDirectory(into).shard)
    names = {path.name.partition("-")[0] for path in (into / "state" / "shard-0000").iterdir()}
    assert not names & {"aside", "rewrite"}


def test_a_file_that_is_none_costs_no_directory(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[[rule]]\nshape = 'nonsense'\nhost = 'a.test'\n")
    done = fyke("crawl", "http://a.test/", "--into", str(tmp_path / "c"), "--rewrite", str(tmp_path / "rules.toml"))
    assert done.returncode == 2 and "rule 1" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "c").exists()


def test_several_agents_lose_nothing(tmp_path: Path) -> None:
    """Its mirror is of another shard than the site, so that rules lead from shard to shard; and agents are killed."""
    of = Division(2, 2)
    shards = {
        name: of.shard_of(locate(f"http://{name}/").domain) for name in (SMALL.host, *(f"m{n}.sim" for n in range(9)))
    }
    mirror = next(name for name, shard in shards.items() if shard != shards[SMALL.host])
    site = replace(SMALL, aliases=(mirror,))
    learned = rules_of_site(site.host, walked(site))
    assert any(rule.shape is Shape.HOST and rule.host == mirror for rule in learned)
    with dust_web(site) as web:
        rules = tmp_path / "rewrite.toml"
        rules.write_text(render([*learned, DECOY]))
        config = run_settings(tmp_path, web, politeness={"host_delay_s": 0.01, "address_delay_s": 0.0})
        into = tmp_path / "crawl"
        arguments = (web.seed, "--scope", "web", "--agents", "2", "--rewrite", str(rules))
        run = begin(into, config, *arguments, stderr=subprocess.PIPE)
        for kill in range(4):
            wait_until(lambda: len(web.asked) >= 20 * (kill + 1) or run.poll() is not None)  # noqa: B023 - asked here
            if there := processes_of(run.pid):
                os.kill(there[kill % len(there)], signal.SIGKILL)
        _, errors = run.communicate(timeout=100)
        assert run.returncode == 0, errors
        done = crawl(into, config, *arguments)
        assert done.status == 0, done.errors
        assert DECOY.name in done.summary["revoked"]
        assert not web.missed
        assert sum(done.summary["rewritten"].values()) > len(site.pages())
        assert {rule.name for rule in learned} <= done.summary["rewritten"].keys()
        assert pages_of_web(web, archived(into)) == set(site.pages()) | {NOTHING}
        rules.write_text("")  # a person takes all back: what was put aside is fetched, by whoever has it
        last = crawl(into, config, *arguments)
        assert last.status == 0, last.errors
        assert {page.url for page in walked(site)} <= {url.replace(f":{web.port}", "") for url in archived(into)}


def test_pages_that_are_exceptions_are_named(tmp_path: Path) -> None:
    """By `why` of each of their URLs; the summary and `status` count them."""
    into, head = tmp_path / "c", {"Content-Type": "text/html"}
    changing = ["/hub", *(f"/hub?sid={n}" for n in range(2 * MOST_CONTRADICTIONS))]
    others = [f"/o{n}{sid}" for n in range(20) for sid in ("", "?sid=1")]
    with small_site(1) as site:
        for n, path in enumerate(changing):
            site.answers[path] = 200, head, f"<p>{' '.join(f'word{n}of{k}' for k in range(50))}".encode()
        for path in others:
            said = " ".join(f"{path.partition('?')[0]}of{k}" for k in range(50))
            site.answers[path] = 200, head, f"<p>{said}".encode()
        links = "".join(f'<a href="{path}">more</a>' for path in [*changing, *others])
        site.answers["/"] = 200, head, links.encode()
        (tmp_path / "rules.toml").write_text(render([Rule(shape=Shape.DROP_KEY, host="127.0.0.1", key="sid")]))
        run = crawl(into, settings_file(tmp_path), site.url, "--rewrite", str(tmp_path / "rules.toml"))
        assert run.status == 0 and run.summary["rewrite_exceptions"] == 1, run.errors
        assert not run.summary["revoked"] and all(site.asked[path] == 1 for path in changing)
        told = "1  pages that are exceptions to rewrite rules"
        assert told in run.errors and told in fyke("status", str(into)).stdout
        for path in [*changing, *others]:
            facts = " ".join(why(CrawlDirectory(into), f"{site.url}{path[1:]}").facts)
            assert ("it is an exception to rewrite rules" in facts) == (path == "/hub")
            assert (f"stay as they are: {site.url}hub is an exception to the rules" in facts) == ("/hub?" in path)
            assert ("are rewritten to" in facts) == ("/o" in path and "?" in path)


def test_a_site_too_small_for_rules_says_so(tmp_path: Path) -> None:
    site = replace(SHOP, articles=3, folders=0, things=2, missing=0, aliases=())
    with dust_web(site) as web:
        assert crawl(tmp_path / "c", run_settings(tmp_path, web, checkpoint_s=10.0), web.seed).status == 0
    done = fyke("rewrite", str(tmp_path / "c"))
    first, second = done.stdout.splitlines()
    assert done.returncode == 0 and first.startswith(f"{tmp_path / 'c'}: 0 rules in ")
    assert second.startswith("Left out, because too few pages were fetched that say so (10 to 20 are needed): drop-")
    found = json.loads(fyke("rewrite", str(tmp_path / "c"), "--json").stdout)
    assert not found["rules"] and all(0 < rule["support"] < 20 for rule in found["short_of_support"])


def test_a_site_whose_pages_change_at_every_request_is_named(tmp_path: Path) -> None:
    site = replace(SHOP, noise=("quote",), missing=0, aliases=())
    with dust_web(site) as web:
        assert crawl(tmp_path / "c", run_settings(tmp_path, web, checkpoint_s=10.0), web.seed).status == 0
    *_, told = fyke("rewrite", str(tmp_path / "c")).stdout.splitlines()
    found = json.loads(fyke("rewrite", str(tmp_path / "c"), "--json").stdout)
    (restless,) = found["restless"]
    first, second = restless["example"]
    assert told.startswith(f"{restless['pages']} pages may say something else at every request")
    assert told.endswith(f"look at {first} and {second}") and first != second and not found["rules"]


def test_rules_that_are_not_there_are_one_line(tmp_path: Path) -> None:
    gone = fyke("crawl", "http://a.test/", "--into", str(tmp_path / "c"), "--rewrite", str(tmp_path / "none.toml"))
    assert gone.returncode == 2 and "none.toml" in gone.stderr and len(gone.stderr.splitlines()) == 1
    nothing = fyke("rewrite", str(tmp_path / "c"))
    assert nothing.returncode == 3 and len(nothing.stderr.splitlines()) == 1
