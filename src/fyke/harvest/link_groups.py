"""The links of one page, by their kinds in the table of links and in the frontier.

Called by `fyke.harvest.binder` for every page, and by a repair that reads pages again.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from fyke.core.batches import Kind, LinkKind
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.harvest.dates import credible

NOT_FOLLOWED = 255  # in place of a `Kind`


class Group(NamedTuple):
    """Links of one kind, as written in one page."""

    link_kind: LinkKind  # in the table of links
    hrefs: Sequence[str]
    depth: int
    kind: int  # the `Kind` for the frontier, or NOT_FOLLOWED
    dated: Mapping[str, float] = MappingProxyType({})  # when some changed, by href, as the page says


def groups_of(page: Page, level: int = 0) -> list[Group]:
    """Return the links of `page`, in the order of the table of links. `level` indexes lie above the sitemaps it
    names."""
    visit, links = page.exchange.visit, page.links
    needed = (Kind.REQUISITE, Kind.SECOND, Kind.THIRD)[visit.beyond]
    if page.exchange.outcome is Outcome.REDIRECTED:  # the same page elsewhere, with the same depth and kind
        groups = [
            Group(LinkKind.REDIRECT, links.pages[:1], visit.depth, Kind.SECOND if visit.beyond > 1 else visit.kind),
            Group(LinkKind.REDIRECT, links.pages[1:], visit.depth, Kind.PAGE),
        ]
    else:
        groups = [
            Group(LinkKind.PAGE, links.pages, visit.depth + 1, Kind.PAGE, _said(page)),
            Group(LinkKind.REQUISITE, links.requisites, visit.depth + 1, needed),
            Group(LinkKind.NOFOLLOW, links.nofollow, 0, NOT_FOLLOWED),
            Group(LinkKind.PAGE, links.listings, level, Kind.LISTING),
        ]
    return [group for group in groups if group.hrefs]


def _said(page: Page) -> Mapping[str, float]:
    """Return when pages changed by what a list says, except for what it said at an earlier visit."""
    exchange = page.exchange
    before = exchange.visit.earlier.at if exchange.visit.earlier is not None else 0.0
    return credible(page.links.dated, before, exchange.started_at) if page.links.dated else {}
