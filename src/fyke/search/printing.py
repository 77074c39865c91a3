"""Results for people: on a terminal, or in a pipe.

`fyke search` calls it. Invariant: nothing a page wrote can steer the terminal. Control characters, and those that turn
the direction of text, are taken out; titles and snippets are never read as markup.
"""

from rich.console import Console
from rich.text import Text

from fyke.core import terminal
from fyke.quantities import counted
from fyke.search.results import Hit, Results, Spans


def clean(text: str) -> str:
    """Return `text` in one line, without characters that steer a terminal or hide."""
    return " ".join(terminal.clean(text).split("\n")).replace("\t", " ")


def show(results: Results, console: Console) -> None:
    """Print `results`: in colour on a terminal, plain elsewhere."""
    for hit in results.hits:
        _show_hit(hit, console)
    _line(console, _summary(results), "dim" if results.hits else "")
    if results.unsaid:
        _line(console, f"No page has {clean(', '.join(results.unsaid))}", "")
    if results.suggestion:
        begin = "These are for" if results.is_respelt else "Did you mean"
        _line(console, f"{begin}: {clean(results.suggestion)}", "bold")


def _show_hit(hit: Hit, console: Console) -> None:
    _line(console, clean(hit.title) or clean(hit.url), "bold")
    _line(console, clean(hit.url), "green")
    if hit.snippet:
        console.print(_marked(hit.snippet), soft_wrap=not console.is_terminal)
    if hit.more_from_site:
        _line(console, f"{hit.more_from_site:,} more: site:{clean(hit.site)}", "dim")
    if hit.more_like_it:
        _line(console, f"and {hit.more_like_it:,} like it: near:{clean(hit.url)}", "dim")
        for url in hit.like_it:
            _line(console, f"  {clean(url)}", "dim")
    _line(console, "", "")


def _line(console: Console, text: str, style: str) -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _marked(snippet: Spans) -> Text:
    text = Text()
    for piece, marked in snippet:
        text.append(clean(piece), style="bold yellow" if marked else "")
    return text


def _summary(results: Results) -> str:
    found = f"{counted(results.total, 'page')} for {clean(results.query)!r} in {results.took_ms:.1f} ms"
    return found if results.total else "Nothing found"
