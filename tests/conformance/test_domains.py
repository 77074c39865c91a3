"""The tests of the Public Suffix List: a pay-level domain is the registrable domain of a host."""

from conformance.oracles import ORACLES, judge
from fyke.core.urls import canonical, pay_level_domain, split


def registrable(name: str) -> str:
    """The pay-level domain of `name` as a canonical URL would have it; `null` where a host is its own, as ours are."""
    url = canonical(f"http://{name}/")
    host = split(url).host if url else ""
    domain = pay_level_domain(host) if host else ""
    return "null" if domain == host else domain


def test_every_line() -> None:
    problems = {}
    for line in (ORACLES / "psl" / "tests.txt").read_text().splitlines():
        name, blank, domain = line.partition(" ")
        if not blank or line.startswith("//"):
            continue
        theirs = canonical(f"http://{domain}/")
        wanted = split(theirs).host if theirs and domain != "null" else "null"
        own = canonical(f"http://{name}/")
        if own and split(own).host == wanted:
            wanted = "null"  # the host is its own domain
        ours = registrable(name)
        problems[name] = "" if ours == wanted else f"{ours} where {domain} is expected"
    judge(problems)
