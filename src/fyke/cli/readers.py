"""Commands for those who work with a crawl's results: they search, export, copy and serve it."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fyke.cli import rooms
from fyke.cli.app import AsJson, Folder, app, not_empty, of_this_format, path
from fyke.cli.console import AnswerOutput, Reporter, kept_back, print_json, say, say_aside
from fyke.core.errors import ConfigurationError
from fyke.core.memory import let_go_of_libraries

LOST_NAMED = 5  # lost files, in a line for people
SHORT_NAMED = 3  # rules that too few pages support, in a line for people


@app.command()
def index(
    directory: Folder,
    follow: Annotated[bool, typer.Option("--follow", help="Keep the index up to date while the crawl runs.")] = False,
    memory_mb: Annotated[
        int, typer.Option(help="Memory for PageRank, in MB; if that is too little, it works on disk.", min=1)
    ] = 32,
    as_json: AsJson = False,
) -> None:
    """Make a crawl's pages searchable. It reads only pages that are new.

    You may stop it at any time: the same command goes on. With --follow it runs beside a crawl. It also finds pages
    that say nearly the same as an earlier page, and lists them in DIR/tables/near-00000.parquet.

    Exit status: 0 all is indexed, 1 all except pages that could not be read from the archive.
    """
    index_with_status = rooms.following.index_with_status  # so its libraries are there to be let go of
    let_go_of_libraries()
    console = Reporter(stderr=True)
    done = index_with_status(directory, console, follow=follow, links_memory_bytes=memory_mb << 20)
    if as_json:
        print_json(asdict(done))
    else:
        say(
            f"{directory}: {rooms.quantities.counted(done.documents, 'page')} can be found; {done.read:,} were read,"
            f" {done.written:,} written, {done.deleted:,} deleted"
        )
        say(f"Next: fyke search {shlex.quote(str(directory))} WORDS")
    _complain_of_unreadable(
        directory, done.unreadable, f"repair the archive, delete {directory / 'index'}, index again"
    )


@app.command()
def rewrite(directory: Folder, as_json: AsJson = False) -> None:
    """Learn which URLs of a crawl lead to the same page. The rules are in DIR/rewrite.toml, to be read and edited.

    A crawl uses them only with fyke crawl --rewrite DIR/rewrite.toml.
    """
    with rooms.progress.Progress(Reporter(stderr=True), "reading pages") as progress:
        rules, short, restless = rooms.learner.learn(directory, progress.tell)
    if as_json:
        found = {"rules": rules, "short_of_support": short}
        told = {of: [rule.model_dump(mode="json", exclude_defaults=True) for rule in found[of]] for of in found}
        print_json({**told, "restless": [site._asdict() for site in restless]})
        return
    for rule in rules:
        say(f"{rule.name}: {rule.support:,} contents, {rule.contradictions:,} contradictions")
    say(f"{directory}: {rooms.quantities.counted(len(rules), 'rule')} in {directory / 'rewrite.toml'}")
    if short:
        each = ", ".join(f"{rule.name} ({rule.support})" for rule in short[:SHORT_NAMED])
        more = f", and {len(short) - SHORT_NAMED:,} more" if len(short) > SHORT_NAMED else ""
        say(f"Left out, because too few pages were fetched that say so (10 to 20 are needed): {each}{more}")
    if restless:
        count = rooms.quantities.counted(sum(site.pages for site in restless), "page")
        look = " and ".join(restless[0].example)
        say(f"{count} may say something else at every request, such as the time, and teach no rule: look at {look}")


@app.command()
def search(
    directory: Folder,
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="Words and operators, see above.")],
    limit: Annotated[int, typer.Option(help="Number of pages to list.", min=1)] = 10,
    offset: Annotated[int, typer.Option(help="Number of pages to skip, from the best one on.", min=0)] = 0,
    also: Annotated[list[Path] | None, typer.Option(help="Search this crawl too.", metavar="DIR", parser=path)] = None,
    as_json: AsJson = False,
) -> None:
    """Find the pages that answer a query.

    Words, "phrases", +must, -not, this OR that, site:example.org/docs/, inurl:x, intitle:x, lang:en, after:2024-01-31,
    before:2025, near:URL. Quote the query for the shell. Three in five of the important words must be in a page, in its
    title or address, or in links to it. A word that no page has is named. It is read as a word of the
    pages that is spelt alike, or as two neighbours in them, or else left out; +word is not.
    A page's date is the one that it states, or its server, or else that of the fetch.
    If several pages say nearly the same, only the best is listed; near: with the address of one lists them all.
    If pages of several hosts are searched, two of each host are listed, whatever --limit says; site: lists them all.
    The first 200,000 characters of a page are searched.

    Exit status: 0 something was found, 1 nothing was, 2 wrong usage, 3 there is no index.
    """
    crawls = [directory, *map(of_this_format, also or [])]
    with kept_back(), rooms.searcher.Searcher(crawls) as searcher:
        results = searcher.search(" ".join(query), offset, limit)
    if as_json:
        print_json(asdict(results))
    else:
        rooms.printing.show(results, AnswerOutput())
    if not results.hits:
        raise typer.Exit(1)


@app.command()
def report(
    directory: Folder,
    out: Annotated[
        Path | None, typer.Option(help="The HTML file.  [default: DIR/report.html]", metavar="FILE", parser=path)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a crawl in one HTML file that can be mailed.

    It has figures, plots, hosts and domains. The crawl may be running. --json prints the figures alone; then a
    file is written only if --out names one.
    """
    if as_json:
        print_json(rooms.report.figures(directory, Reporter(stderr=True)))
    if as_json and out is None:
        return
    say_path = say_aside if as_json else say
    say_path(f"{rooms.report.write_report(directory, out, Reporter(stderr=True))}")


@app.command()
def links(
    directory: Folder,
    broken: Annotated[bool, typer.Option("--broken", help="List broken links, with the pages they stand on.")] = False,
    on: Annotated[int, typer.Option(help="Number of pages to list for a broken link.", min=1)] = 10,
    as_json: AsJson = False,
) -> None:
    """Find broken links, and count the URLs that links lead to.

    A link is broken if it leads, also by redirects, to an error, to no answer, or round in a circle. A link is not
    judged if its target was not fetched: crawl with --requisites to check images as well, and with --scope web
    --depth 1 to check links to other hosts. --broken --json prints a JSON object in a line for each broken link.

    Exit status of --broken: 0 no link is broken, 1 some are.
    """
    if not rooms.directory.CrawlDirectory(directory).config().store.links:
        raise ConfigurationError(
            f"{directory} holds no links: store.links = false in its fyke.toml; begin another crawl"
        )
    with rooms.sql.Questions(directory) as questions:
        with rooms.progress.Progress(Reporter(stderr=True), "following links"):
            found = rooms.broken.BrokenLinks(questions)
        for link in found.worst(shown=on) if broken else ():
            say(json.dumps(link._asdict()) if as_json else str(link))
        if not as_json:
            say(f"{directory}: {found}")
        elif not broken:
            print_json(found.as_dict())
    if broken and found.count:
        raise typer.Exit(1)


@app.command()
def export(
    directory: Folder,
    to: Annotated[str, typer.Option(help="See above.", metavar="FORMAT")],
    out: Annotated[
        Path | None, typer.Option(help="File or folder to make.  [default: in DIR/export]", metavar="PATH", parser=path)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include the text of exact copies, and pages that say noindex.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(help="Only pages fetched from this day or time on (UTC).", metavar="DATE")
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="Say of each page whether it is new, changed or gone; for jsonl or csv.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Export a crawl for other tools, also while it runs. FORMAT is one of

    \b
    parquet   the table of pages with main text and language; a folder of files, or one if PATH ends in .parquet
    jsonl     a line for each page: URL, title, text, language, time and more; packed if PATH ends in .gz
    markdown  a file for each page: the main content below a front matter
    wacz      the whole archive in one file, for replay
    links     source, target, kind; a folder of Parquet files, or one .parquet, .tsv or .tsv.gz
    csv       the table of pages, without text

    HTML pages, plain text and documents (fyke[documents]) have a text. jsonl and markdown hold only pages with a text:
    the last answer of each URL, one of several exact copies (the URL that they name as canonical, or else the first),
    and no page that says noindex. parquet has a row for every visit, without the text of exact copies. The other
    formats hold everything.

    If there is an index, near_of in jsonl and parquet is the key of the first page that said nearly the same. For each
    text once, leave out rows that have a near_of.

    With --changes there is a line for each page that is new, changed or gone since DATE, and says which. New and
    changed pages come as they are now. A page is gone after a 404 or 410 at two visits in a row, or if it now
    redirects, is empty, or says noindex. In jsonl, changes are those of what jsonl holds without --changes: a copy is
    new when the page before it goes, and a page is gone when it becomes a copy. In csv an apostrophe precedes what
    a spreadsheet would take for a formula: at the begin of a cell, and behind a semicolon or tab in it, which separates
    cells in some countries. The other formats have URLs and titles as they are.

    If it is killed, the same command goes on. PATH appears when all of it is written.

    Exit status: 0 all is exported, 1 all except unreadable parts of the archive, 3 tables or indexes are damaged.
    """
    export_to, kind = rooms.export.export, rooms.export.named(to)  # so their libraries are there to be let go of
    let_go_of_libraries()
    done = export_to(
        directory, kind, out, Reporter(stderr=True), everything=everything, since=_time(since), changes=changes
    )
    if as_json:
        print_json(done.as_dict())
    else:
        say(str(done))
    _complain_of_lost(directory, done.lost, "export again")
    _complain_of_unreadable(directory, done.unreadable, "repair the archive, and export again")


def _time(text: str | None) -> datetime | None:
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"--since {text}: not a date; write 2026-01-31 or 2026-01-31T12:00") from None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found


@app.command()
def extract(
    directory: Folder,
    config: Annotated[
        Path | None,
        typer.Option(help="A file with [[extract]] tables.  [default: DIR/fyke.toml]", metavar="FILE", parser=path),
    ] = None,
    to: Annotated[str, typer.Option(help="parquet, jsonl, or a database, see above.", metavar="TARGET")] = "parquet",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files.  [default: DIR/extracted]", metavar="DIR", parser=path)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Add rows to a database while the crawl makes them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make tables of fields from archived pages, without a request. Change a selector, and run it again.

    A file of settings says which fields:

    \b
    [[extract]]
    table = "products"
    match = "/product/"                               # RE2; leave out for all pages
    each = "div.product"                              # a row for each; leave out for one row a page
    fields.name = "h2"                                # CSS: the text of the first
    fields.link = { select = "a::attr(href)", type = "url" }
    fields.price = { select = "json:Product.offers.price", type = "number" }
    fields.tags = { select = ".tag", many = true }

    fyke crawl --config with this file writes the same tables while it crawls, as DIR/tables/NAME-*.parquet.

    A database is --to postgresql://HOST/NAME or duckdb:FILE. Tables of the same names in it are replaced in one step,
    when the new ones are whole. Put a password into PGPASSWORD or ~/.pgpass.

    --follow adds rows to the database while the crawl makes its own tables. It adds each row once, even if the crawl or
    this command is killed: the same command goes on. It ends when the crawl ends.

    Exit status: 0 all is extracted, 1 all except pages that could not be read from the archive.
    """
    if follow:
        if config or out or not to.startswith(rooms.extracting.DATABASES):
            raise ConfigurationError(
                "--follow adds the crawl's own tables to a database: name the database with --to, give nothing else"
            )
        done = rooms.extracting.Extracted(rooms.filling.follow(rooms.directory.CrawlDirectory(directory), to))
    else:
        settings = rooms.config.load(config) if config else rooms.directory.CrawlDirectory(directory).config()
        done = rooms.extracting.extract(directory, settings.extract, out, to, Reporter(stderr=True))
    if as_json:
        print_json(done._asdict())
    else:
        for place, rows in done.files.items():
            say(f"{place}: {rooms.quantities.counted(rows, 'row')}")
        if done.cut:
            more = "the rows and values of each go up to some place in it"
            say_aside(f"{rooms.quantities.counted(done.cut, 'page')} with more than is kept: {more}")
    _complain_of_unreadable(directory, done.unreadable, "repair the archive, and extract again")


@app.command()
def copy(
    directory: Folder,
    target: Annotated[
        str, typer.Argument(help="A folder, or s3://, gs:// or az://BUCKET/PREFIX.", metavar="TARGET", parser=not_empty)
    ],
    as_json: AsJson = False,
) -> None:
    """Copy finished files into an object store or a folder.

    It sends only new files, and reads each back to compare. The crawl may be running. Finished files are closed WARC
    files with their indexes, tables, exports, settings and seeds. If it is killed, the same command goes on. A TARGET
    with another crawl is refused. Give credentials as for the store's own tools, for instance in AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT.

    Exit status: 0 all is copied, 1 all except files that are lost or damaged, 3 TARGET holds another crawl.
    """
    done = rooms.copying.copy(rooms.directory.CrawlDirectory(directory), target, Reporter(stderr=True))
    if as_json:
        print_json(asdict(done))
    else:
        say(str(done))
    _complain_of_lost(directory, done.lost, "copy again")


@app.command()
def move(
    directory: Folder,
    target: Annotated[
        Path, typer.Argument(help="A folder that is empty or does not exist.", metavar="TARGET", parser=path)
    ],
    as_json: AsJson = False,
) -> None:
    """Move a crawl's directory, on this disk or to another.

    No crawl may run in it. On another disk every file is compared before the old one is deleted. If it is killed, the
    same command goes on.

    Exit status: 0 all is moved, 1 all is moved, but finished files of the crawl were lost before.
    """
    crawled = rooms.directory.CrawlDirectory(directory)
    with rooms.progress.Progress(Reporter(stderr=True), "moving", pipe_s=5.0) as progress:
        done = rooms.moving.move(crawled, target, partial(progress.tell, unit="bytes"))
    if as_json:
        print_json(asdict(done))
    else:
        files = rooms.quantities.counted(done.files, "file")
        compared = f"; {files}, {rooms.quantities.bytes_text(done.size_bytes)}, compared" if done.files else ""
        say(f"{directory} was moved to {target}{compared}")
    lost = rooms.lost.lost_files(rooms.directory.CrawlDirectory(target.absolute()))
    _complain_of_lost(target, [str(path.relative_to(target.absolute())) for path in lost])


def _complain_of_lost(directory: Path, lost: Sequence[str], then: str = "") -> None:
    """Name the crawl's files that are gone or damaged in a line on stderr; exit with 1."""
    if lost:
        more = f" and {len(lost) - LOST_NAMED:,} more" if len(lost) > LOST_NAMED else ""
        mend = f"fyke check --repair {directory} repairs what it can{f'; then {then}' if then else ''}"
        say_aside(f"lost or damaged: {', '.join(lost[:LOST_NAMED])}{more}; {mend}")
        raise typer.Exit(1)


def _complain_of_unreadable(directory: Path, count: int, mend: str) -> None:
    """Count the pages left out because their archive record is unreadable in a line on stderr; exit with 1."""
    if count:
        told = f"{rooms.quantities.counted(count, 'page')} could not be read from the archive and are left out"
        say_aside(f"{told}: fyke check {directory} shows where; {mend}")
        raise typer.Exit(1)


@app.command()
def serve(
    directories: Annotated[list[Path], typer.Argument(help="Directories of crawls.", metavar="DIR...", parser=path)],
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free port.", min=0, max=65535)] = 8080,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: all addresses of this machine.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(help="Secret word that the dashboard needs to steer a crawl.  [default: a new one]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search, read, watch and steer crawls in a browser.

    Ctrl-C ends it. Several crawls are searched as one. /api is for programs, /metrics for Prometheus.
    """

    def ready(serving: "rooms.serve.Serving") -> None:
        if as_json:
            say(json.dumps(asdict(serving)))
        else:
            say(f"Search     {serving.url}\nDashboard  {serving.dashboard}\nCtrl-C ends it")

    rooms.serve.serve(directories, host, port, token, ready)
