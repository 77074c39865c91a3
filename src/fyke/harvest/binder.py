"""The links of some pages, bound into one sheaf of columns. They are resolved together, which costs least.

Called by `fyke.harvest.harvest` on its thread, except for `resolved`, which large pages go through beside it. It counts
what other pages told: the redirects in a row that lead to a page, and the sitemaps that its host has named.

Invariant: a page's key is entered in content-seen no sooner than its links are in a sheaf.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fyke.core.batches import Kind, LinkKind
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.resolve import MOST_WRITTEN_BYTES, LinkResolver, Located
from fyke.core.urls import key_of
from fyke.core.visits import Exchange
from fyke.harvest.content_seen import ContentSeen, depends_on_name
from fyke.harvest.link_groups import NOT_FOLLOWED, Group, groups_of
from fyke.harvest.named_sitemaps import NamedSitemaps
from fyke.harvest.redirects import MOST_HOPS, Redirects
from fyke.harvest.sheaf import NO_POINTERS, Pointers, Reaped, Sheaf, Times

FEW_LINKS = 64
LINK_BYTES = 128  # for a link as a string in a list, and as columns
CUT_SHORT = "its end was not read for links or values, because it would have cost too much"


class PendingPage(NamedTuple):
    """A page whose links are not resolved yet."""

    exchange: Exchange
    page: Page
    keys: tuple[int, ...]
    level: int  # sitemap indexes above the sitemaps that it names
    hops: int = 0  # redirects in a row up to this one
    # What was done beside the loop, if it is large:
    is_packed: bool = False  # it brought no page; its body was packed
    is_opened: bool = False  # its body was decoded
    redirect: Sequence[str] = ()  # where its header leads
    found: Located | None = None  # its resolved links


class Binder:
    """Binds pages into sheaves."""

    def __init__(
        self,
        links: LinkResolver,
        named: NamedSitemaps,
        content_seen: ContentSeen,
        redirects: Redirects | None = None,
    ) -> None:
        self._links = links
        self._named = named
        self._content_seen = content_seen
        self._redirects = redirects or Redirects({})

    def __repr__(self) -> str:
        return f"Binder({self._links!r})"

    def hops(self, exchange: Exchange) -> int:
        """Return the number of redirects in a row up to `exchange`. If there are too many, set its outcome."""
        if exchange.outcome is not Outcome.REDIRECTED:
            self._redirects.ended(exchange.visit.key)
            return 0
        hops = self._redirects.followed(exchange.visit.key)
        if hops > MOST_HOPS:
            exchange.outcome = Outcome.REDIRECTED_TOO_OFTEN
            exchange.detail = f"redirect {hops} in a row; further ones are not followed"
        return hops

    def resolved(self, pending: PendingPage) -> PendingPage:
        """Return `pending` with its links resolved, which takes long for a large page."""
        groups = groups_of(pending.page, pending.level)
        return pending._replace(found=self._links.resolve([(pending.page.links.base, group.hrefs) for group in groups]))

    def slow_links(self, pending: PendingPage, most: int) -> int:
        """Return about how many links of a page take long to resolve each, not far beyond `most`. Few links are only
        counted."""
        groups = groups_of(pending.page, pending.level)
        links = sum(len(group.hrefs) for group in groups)
        if links <= min(FEW_LINKS, most):
            return links
        return self._links.slow_links([(pending.page.links.base, group.hrefs) for group in groups], most)

    def without_pages(self, reaped: Sequence[Reaped]) -> Sheaf:
        """Return the sheaf of exchanges that brought nothing to read, except for links in heads."""
        for each in reaped:
            if each.exchange.outcome is not Outcome.UNCHANGED:
                self._redirects.ended(each.exchange.visit.key)
        led = [PendingPage(each.exchange, each.page, (), 0) for each in reaped if len(each.page.links)]
        return Sheaf(reaped, NO_POINTERS, self.sheaf(led).pointers if led else NO_POINTERS)

    def sheaf(self, together: Sequence[PendingPage]) -> Sheaf:
        """Return the sheaf of these pages, their links resolved."""
        of_pages = [groups_of(pending.page, pending.level) for pending in together]
        groups = [(pending, group) for pending, some in zip(together, of_pages, strict=True) for group in some]
        found = together[0].found
        if found is None:
            found = self._links.resolve([(pending.page.links.base, group.hrefs) for pending, group in groups])
        for number in found.cut:
            groups[number][0].page.cut = True
        of = np.searchsorted(np.cumsum([len(group.hrefs) for _, group in groups]), found.link, "right")
        ends = iter(np.searchsorted(of, np.arange(len(groups)), "right").tolist())
        kind = np.array([group.kind for _, group in groups], np.int64)[of]
        reaped = []
        end = 0
        for pending, some in zip(together, of_pages, strict=True):
            first = end
            for group in some:
                begin, end = end, next(ends)
                if group.link_kind is LinkKind.PAGE and group.kind == Kind.LISTING:
                    host = pending.exchange.visit.host
                    kind[begin + self._named.admitted(host, end - begin, group.depth) : end] = NOT_FOLLOWED
            reaped.append(self._reaped(pending, found.urls[first:end]))
        pointers = Pointers(
            found,
            np.array([pending.exchange.visit.key for pending, _ in groups], np.uint64)[of],
            np.array([pending.exchange.visit.domain for pending, _ in groups], np.uint64)[of],
            np.array([group.link_kind for _, group in groups], np.int64)[of],
            np.array([group.depth for _, group in groups], np.int64)[of],
            kind,
            _dates(groups)[found.link],
        )
        return Sheaf(reaped, pointers)

    def _reaped(self, pending: PendingPage, urls: Sequence[bytes]) -> Reaped:
        exchange, page, keys = pending.exchange, pending.page, pending.keys
        if page.cut and not exchange.detail:
            exchange.detail = CUT_SHORT
        if keys and not page.duplicate and not page.noindex:  # copies of it are read, because its tags may say so
            self._content_seen.enter(keys[depends_on_name(page, urls)])
        redirected = exchange.outcome is Outcome.REDIRECTED and urls
        if redirected:
            self._redirects.lead_to(key_of(urls[0]), pending.hops)
        return Reaped(exchange, page, len(urls), urls[0].decode() if redirected else None)


def written_bytes(page: Page) -> int:
    """Return about how many bytes the links of `page`, as far as it was parsed, have when written out."""
    return min(len(page.links) * len(page.links.base), MOST_WRITTEN_BYTES)


def links_bytes(page: Page) -> int:
    """Return about how many bytes the links of `page`, as far as it was parsed, take until they are handed on."""
    return len(page.links) * LINK_BYTES + written_bytes(page)


def _dates(groups: Sequence[tuple[PendingPage, Group]]) -> Times:
    """Return the dates of all links of `groups`, in order."""
    if not any(group.dated for _, group in groups):
        return np.zeros(sum(len(group.hrefs) for _, group in groups))
    return np.array([group.dated.get(href, 0.0) for _, group in groups for href in group.hrefs])
