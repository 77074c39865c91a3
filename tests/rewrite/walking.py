"""A site walked without a crawler: every URL that its links name, and the content that each has."""

from collections import deque
from collections.abc import Callable

from fyke.harvest.prints import whole_prints
from fyke.lab.simweb.dust import Dust
from fyke.rewrite.learning import Content, SameContents
from fyke.rewrite.likeness import PrintsOfSite


def walked(site: Dust, made_of: Callable[[str], str] = str) -> list[Content]:
    """All pages that can be reached, each URL changed by `made_of` before it is followed."""
    first = made_of(f"http://{site.host}/")
    met, waiting, pages, prints = {first}, deque([first]), [], PrintsOfSite()
    while waiting:
        url = waiting.popleft()
        host, _, target = url.removeprefix("http://").partition("/")
        name = site.page_of(host, f"/{target}")
        if name is None:
            pages.append(Content(url, 0))
            continue
        session = site.session_of(url)
        prints.add(whole_prints(site.body(name, session, len(met)), "text/html", url))
        pages.append(Content(url, len(met)))
        for link in site.links(name, session):
            to = made_of(f"http:{link}")
            if to not in met:
                met.add(to)
                waiting.append(to)
    same, known = SameContents(), list(prints.pages())
    for numbers, _ in known:
        same.join(numbers)
    read = iter(known)
    return [
        Content(page.url, same.first(numbers[0]), outline)
        for page in pages
        for numbers, outline in [next(read) if page.content else ([0], None)]
    ]


def page_of(site: Dust, url: str) -> str | None:
    """The true name of the page at `url`."""
    host, _, target = url.removeprefix("http://").partition("/")
    return site.page_of(host, f"/{target}")
