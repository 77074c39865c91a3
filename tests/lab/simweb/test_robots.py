"""What robots.txt says is what the truth says: Google's own matcher agrees."""

import pytest

from fyke.lab.simweb.kinds import RobotsKind
from fyke.lab.simweb.robots import PARSED_BYTES, forbids, text

RobotsMatcher = pytest.importorskip("jwm.robotstxt.googlebot").RobotsMatcher

PATHS = [
    f"/{section}/{name}"
    for section in ("news", "private", "drafts", "caf%C3%A9", "a%20b", "trap", "~ann", "m")
    for name in ("10.html", "7.html", "7/", "page?id=10", "12.pdf", "3.txt", "")
] + ["/", "/robots.txt", "/sitemap.xml", "/privately/1.html"]
WITH_TEXT = [kind for kind in RobotsKind if kind not in (RobotsKind.NONE, RobotsKind.REFUSED, RobotsKind.DOWN)]


@pytest.mark.parametrize("kind", WITH_TEXT)
def test_text_means_the_truth(kind):
    body = text(kind, 0.5, ["http://h1.d1.sim:8000/sitemap.xml"])
    matcher = RobotsMatcher()
    for path in PATHS:
        if path != "/robots.txt":
            # Google's matcher does not undo needless escapes in rules, RFC 9309 (2.2.2) does.
            rules = body.decode().replace("/%61%20b/", "/a%20b/")
            allowed = matcher.OneAgentAllowedByRobots(rules, "fyke", "http://h1.d1.sim:8000" + path)
            assert allowed != forbids(kind, path), path
    assert body.count(b"\nSitemap: ") + body.startswith(b"Sitemap: ") == 1


def test_the_huge_one_is_cut_after_its_last_rule():
    body = text(RobotsKind.HUGE, 0.5, [])
    assert len(body) > PARSED_BYTES
    assert b"/drafts/" in body[:PARSED_BYTES] and b"isallow" not in body[PARSED_BYTES:]
