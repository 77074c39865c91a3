"""A `Plan` for people: a table to compare, and under it in plain words the bottleneck of the crawl.

`fyke plan` prints it: with colours and rules on a terminal, with aligned columns only in a pipe.
"""

from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fyke.lab.plan.planner import Bound, MethodPlan, Plan
from fyke.lab.plan.question import Question
from fyke.quantities import bits_text, bytes_text, count_text, number, share_text, speed_text, time_text

TEXT_COLUMNS, PIPE_COLUMNS = 100, 200  # a table in a pipe is as wide as its figures, never cut
NAME_COLUMNS, CELL_COLUMNS = 38, 10  # the same in both tables, so that they stand under each other; fits 80 columns
GOOD, BAD = "green", "red"


def text(plan: Plan, terminal: Console) -> str:
    """Return `plan` in words and tables, as `terminal` can show them; without colours and rules for a pipe."""
    console = terminal if terminal.is_terminal else Console(width=PIPE_COLUMNS, color_system=None)
    text_columns = min(console.width, TEXT_COLUMNS)
    with console.capture() as captured:
        console.print(Text(title(plan), style="bold"), width=text_columns)
        for part in (_checks(plan, console.is_terminal), _budgets(plan, console.is_terminal)):
            if not console.is_terminal:  # on a terminal the tables bring their own space
                console.print()
            console.print(part)
        if not console.is_terminal:
            console.print()
        console.print(Text("\n".join(sentences(plan))), width=text_columns)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def title(plan: Plan) -> str:
    """Return the question in a line, with every digit that was given."""
    question = plan.question
    return (
        f"{count_text(question.pages, as_given=True)} pages with"
        f" {number(question.links_per_page, as_given=True)} links each,"
        f" {bytes_text(question.memory_bytes, as_given=True)} of memory,"
        f" {share_text(question.check_share, as_given=True)} of a disk of"
        f" {speed_text(question.disk_bytes_s, as_given=True)}"
    )


def _table(terminal: bool, first: str, *others: str) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD if terminal else None, pad_edge=terminal, padding=(0, 1) if terminal else (0, 2, 0, 0)
    )
    table.add_column(first, min_width=NAME_COLUMNS, no_wrap=True, header_style="bold")
    for name in others:
        table.add_column(name, min_width=CELL_COLUMNS, justify="right", header_style="bold")
    return table


def _checks(plan: Plan, terminal: bool) -> Table:
    question, methods = plan.question, plan.methods
    rate = f"{number(question.pages_s, as_given=True)} pages/s"
    page = bytes_text(question.page_bytes, as_given=True)
    archived = f"{share_text(question.archived_share, as_given=True)} of {page}"
    table = _table(terminal, "URL checks", *(method.method for method in methods))
    rows: list[tuple[str, Callable[[MethodPlan], str | Text]]] = [
        ("bytes moved on disk per byte of URL", lambda method: number(method.overhead)),
        ("the disk keeps up with, pages/s", lambda method: _judged(number(method.disk_pages_s), method, question)),
        (f"disk speed taken by {rate}", lambda method: _judged(_disks(method.disk_share_needed), method, question)),
        ("time for the URL checks alone", lambda method: time_text(method.checks_s)),
        (f"time to crawl, at most {rate}", lambda method: time_text(method.crawl_s)),
        ("", lambda _: ""),
        ("memory it can use", lambda method: bytes_text(method.memory_bytes)),
        ("disk for URLs seen", lambda method: bytes_text(method.seen_bytes)),
        ("  URLs waiting for a check", lambda method: bytes_text(method.batch_bytes) if method.batch_bytes else "none"),
        ("  URLs waiting to be crawled", lambda _: bytes_text(plan.queue_bytes)),
        (f"  the archive, {archived} a page", lambda _: bytes_text(plan.archive_bytes)),
        ("  all of these", lambda method: Text(bytes_text(method.disk_bytes), style="bold")),
    ]
    for name, cell in rows:
        table.add_row(name, *(cell(method) for method in methods))
    return table


def _disks(share: float) -> str:
    """Return a share of one disk's speed, or the number of disks if one is not enough."""
    return share_text(share) if share <= 1 else f"{number(share)} disks"


def _judged(cell: str, method: MethodPlan, question: Question) -> Text:
    return Text(cell, style=GOOD if method.disk_pages_s >= question.pages_s else BAD)


def _budgets(plan: Plan, terminal: bool) -> Table:
    budgets, disk_bytes_s = plan.budgets, plan.question.disk_bytes_s
    table = _table(terminal, "Domain budgets", "BEAST", "naive")
    speeds = budgets.beast_bytes_s, budgets.naive_bytes_s
    table.add_row(
        f"disk speed at {number(plan.question.pages_s, as_given=True)} pages/s",
        *(speed_text(speed) for speed in speeds),
    )
    table.add_row("  as a share of all it has", *(_disks(speed / disk_bytes_s) for speed in speeds))
    table.add_row("queues, beside the one over budget", f"{budgets.beast_queues:,}", "1")
    return table


def sentences(plan: Plan) -> list[str]:
    """Return the bottleneck of the crawl, its remedy, and the cost of the other methods."""
    return [f"{_keeping_up(plan)} {_verdict(plan)}", _others(plan)]


def _keeping_up(plan: Plan) -> str:
    question, drum = plan.question, plan.methods[0]
    return (
        f"With DRUM the disk keeps up with {number(drum.disk_pages_s)} pages/s; your network of"
        f" {bits_text(question.network_bytes_s, as_given=True)} with {number(plan.network_pages_s)}"
        f" of {bytes_text(question.page_bytes, as_given=True)} each."
    )


def _verdict(plan: Plan) -> str:
    question, drum = plan.question, plan.methods[0]
    asked = number(question.pages_s, as_given=True)
    pages = f"{count_text(question.pages, as_given=True)} pages take {time_text(drum.crawl_s)}"
    if drum.bound is Bound.RATE:
        return f"Neither holds back the {asked} you ask for: {pages}."
    slowed = f"so not {asked} but {number(drum.pages_s)}, and {pages}"
    if drum.bound is Bound.NETWORK:
        needed = bits_text(question.page_bytes * question.pages_s)
        return f"The network is what binds, {slowed}; {needed} would do for {asked}."
    needed = speed_text(drum.disk_share_needed * question.disk_bytes_s)
    return f"The disk is what binds, {slowed}; {needed} for URL checks alone would do for {asked}."


def _others(plan: Plan) -> str:
    drum, mercator_b, polybot = plan.methods
    budgets = plan.budgets
    return (
        f"The checks would take Mercator-B {_times(mercator_b, drum)} and Polybot {_times(polybot, drum)} as long."
        f" Budgets cost {speed_text(budgets.beast_bytes_s)} of disk with BEAST, at most"
        f" {speed_text(budgets.beast_limit_bytes_s)} however large the crawl; without it"
        f" {speed_text(budgets.naive_bytes_s)}."
    )


def _times(method: MethodPlan, drum: MethodPlan) -> str:
    return f"{number(method.overhead / drum.overhead)} times"
