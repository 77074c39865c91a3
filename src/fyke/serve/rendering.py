"""From a template and its values to a response.

All pages go through `page`. Invariant: everything that a template is given is escaped.
"""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse

from fyke.core.version import VERSION
from fyke.serve.wording import FILTERS, LANGUAGES, query_string

HERE = Path(__file__).parent


def environment() -> Environment:
    """Return the templates of the package, with our filters."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals.update(version=VERSION, languages=LANGUAGES, query_string=query_string)
    return made


class Templates:
    """Maker of pages from the templates."""

    def __init__(self) -> None:
        self._environment = environment()

    def page(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
    ) -> HTMLResponse:
        """Return the page `template` with `values`."""
        text = self._environment.get_template(template).render(values)
        return HTMLResponse(text.encode("utf-8", "replace"), status, headers)

    def wrong(self, status: int, what: str, link: str = "/", words: str = "Search") -> HTMLResponse:
        """Return a page that says what went wrong, with a link for what to do next."""
        return self.page("wrong.html", status, code=status, what=what, link=link, words=words)
