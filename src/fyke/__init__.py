"""Fyke: a web crawler that is polite, loses nothing, and keeps its memory bounded.

    with fyke.Crawl(["http://example.org/"], into="there", pages=100) as crawl:
        for page in crawl:
            print(page.url, page.title)

The names here are the whole Python interface. Each name is found when it is first used, so that `import fyke` costs
next to nothing, and a plug-in may import from here while the crawler itself is loading.
"""

TYPE_CHECKING = False  # as of `typing`, which takes a while to load
if TYPE_CHECKING:
    from typing import Any

    from fyke.core.config import Config
    from fyke.core.document import Document
    from fyke.core.errors import FykeError
    from fyke.core.outcomes import Outcome
    from fyke.core.pages import Page
    from fyke.core.plugins import BudgetFunction, CrawlOrder, PageSink, ProcessingModule, ProtocolModule, UrlFilter
    from fyke.core.visits import Exchange, Visit
    from fyke.crawl.interface import Crawl
    from fyke.items import Item, extract, field

__all__ = [
    "BudgetFunction",
    "Config",
    "Crawl",
    "CrawlOrder",
    "Document",
    "Exchange",
    "FykeError",
    "Item",
    "Outcome",
    "Page",
    "PageSink",
    "ProcessingModule",
    "ProtocolModule",
    "UrlFilter",
    "Visit",
    "__version__",
    "extract",
    "field",
]

__version__: str

_HOMES = {
    "BudgetFunction": "fyke.core.plugins",
    "Config": "fyke.core.config",
    "Crawl": "fyke.crawl.interface",
    "CrawlOrder": "fyke.core.plugins",
    "Document": "fyke.core.document",
    "Exchange": "fyke.core.visits",
    "FykeError": "fyke.core.errors",
    "Item": "fyke.items",
    "Outcome": "fyke.core.outcomes",
    "Page": "fyke.core.pages",
    "PageSink": "fyke.core.plugins",
    "ProcessingModule": "fyke.core.plugins",
    "ProtocolModule": "fyke.core.plugins",
    "UrlFilter": "fyke.core.plugins",
    "Visit": "fyke.core.visits",
    "extract": "fyke.items",
    "field": "fyke.items",
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module  # noqa: PLC0415 - this module is loaded before `fyke.__main__` minds Ctrl-C

    if name == "__version__":
        value = import_module("importlib.metadata").version("fyke")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'fyke' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
