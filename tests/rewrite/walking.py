"""A site walked without a crawler: every URL that its links name, and the content that each has."""

from collections import deque
from collections.abc import Callable

from fyke.harvest.prints import prints_of
from fyke.lab.simweb.dust import Dust
from fyke.rewrite.learning import Alike, Content


def walked(site: Dust, made_of: Callable[[str], str] = str) -> list[Content]:
    """All pages that can be reached, each URL changed by `made_of` before it is followed."""
    first = made_of(f"http://{site.host}/")
    met, waiting, pages, alike = {first}, deque([first]), [], Alike()
    while waiting:
        url = waiting.popleft()
        host, _, target = url.removeprefix("http://").partition("/")
        name = site.page_of(host, f"/{target}")
        if name is None:
            pages.append(Content(url, 0))
            continue
        session = site.session_of(url)
        body = site.body(name, session, len(met))
        prints = prints_of(body, "text/html", url)
        alike.join(prints)
        pages.append(Content(url, prints[0]))
        for link in site.links(name, session):
            to = made_of(f"http:{link}")
            if to not in met:
                met.add(to)
                waiting.append(to)
    return [Content(page.url, alike.first(page.content)) for page in pages]


def page_of(site: Dust, url: str) -> str | None:
    """The true name of the page at `url`."""
    host, _, target = url.removeprefix("http://").partition("/")
    return site.page_of(host, f"/{target}")
