"""The answer: the cost of a crawl with each way to check URLs and to keep budgets, and its bottleneck.

Plain arithmetic over `fyke.lab.plan.model`, without I/O; `fyke plan` shows it. Invariant: every figure of a `Plan`
follows from its `Question`, by the theorem or section of the paper that its field cites.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fyke.lab.plan.model import (
    beast_bytes_s,
    beast_limit_bytes_s,
    beast_queues,
    drum_overhead,
    least_ram_bytes,
    mercator_b_overhead,
    naive_budget_bytes_s,
    optimal_disk_bytes,
    polybot_overhead,
    sufficient_ram_bytes,
    sustained_pages_s,
)
from fyke.lab.plan.question import Question

OVERHEADS: dict[str, Callable[[Question], float]] = {
    "DRUM": lambda question: drum_overhead(question.crawl, question.memory_bytes, question.bucket_bytes),
    "Mercator-B": lambda question: mercator_b_overhead(question.crawl, question.memory_bytes),
    "Polybot": lambda question: polybot_overhead(question.crawl, question.memory_bytes),
}


class Bound(StrEnum):
    """The bottleneck of a crawl."""

    DISK = "disk"
    NETWORK = "network"
    RATE = "rate"  # none: the crawl is as fast as was asked


@dataclass(frozen=True, slots=True)
class MethodPlan:
    """A crawl whose URLs are checked in one of three ways."""

    method: str
    overhead: float  # bytes moved on disk per byte of URL; Theorems 1 and 2
    disk_pages_s: float  # the speed that the disk keeps up with; Theorem 3
    checks_s: float  # duration of the URL checks alone, at `disk_pages_s`
    disk_share_needed: float  # of the disk's speed, at the speed asked for; Theorem 3 solved for W
    pages_s: float  # of the crawl, limited by the network and the speed asked for
    crawl_s: float
    bound: Bound
    memory_bytes: float  # the part of the given memory that the checks can use
    seen_bytes: float  # URLs seen by the end: keys, or for Polybot whole URLs compressed
    batch_bytes: float  # URLs on disk that wait to be checked
    disk_bytes: float  # all of it, with queue and archive, which are the same for all


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The cost of keeping the domains' budgets; Theorems 4 and 5."""

    passes: float  # alpha_N
    beast_bytes_s: float
    beast_limit_bytes_s: float
    beast_queues: int
    naive_bytes_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole answer."""

    question: Question
    methods: tuple[MethodPlan, ...]  # DRUM, Mercator-B, Polybot
    budgets: BudgetPlan
    network_pages_s: float
    queue_bytes: float
    archive_bytes: float


def plan(question: Question) -> Plan:
    """Answer `question`."""
    budgets = question.budgets
    waiting = (question.unique_links_per_page - 1) * question.pages
    queue_bytes = question.url_bytes * waiting  # b(L - 1)N: of L new URLs a page one is crawled, the rest wait
    archive_bytes = question.pages * question.page_bytes * question.archived_share
    network_pages_s = question.network_bytes_s / question.page_bytes
    return Plan(
        question,
        tuple(_method(name, question, network_pages_s, queue_bytes + archive_bytes) for name in OVERHEADS),
        BudgetPlan(
            budgets.passes,
            beast_bytes_s(budgets),
            beast_limit_bytes_s(budgets),
            beast_queues(budgets),
            naive_budget_bytes_s(budgets),
        ),
        network_pages_s,
        queue_bytes,
        archive_bytes,
    )


def _method(name: str, question: Question, network_pages_s: float, other_disk_bytes: float) -> MethodPlan:
    overhead = OVERHEADS[name](question)
    disk_pages_s = sustained_pages_s(question.crawl, overhead, question.check_bytes_s)
    limits = {Bound.RATE: question.pages_s, Bound.NETWORK: network_pages_s, Bound.DISK: disk_pages_s}
    bound = min(limits, key=lambda limit: limits[limit])
    memory_bytes, seen_bytes, batch_bytes = _space(name, question)
    return MethodPlan(
        name,
        overhead,
        disk_pages_s,
        checks_s=question.pages / disk_pages_s,
        disk_share_needed=question.check_share * question.pages_s / disk_pages_s,
        pages_s=limits[bound],
        crawl_s=question.pages / limits[bound],
        bound=bound,
        memory_bytes=memory_bytes,
        seen_bytes=seen_bytes,
        batch_bytes=batch_bytes,
        disk_bytes=seen_bytes + batch_bytes + other_disk_bytes,
    )


def _space(name: str, question: Question) -> tuple[float, float, float]:
    """Return memory for the checks, disk for the URLs seen, and disk for the URLs that wait for a check."""
    crawl, ram_bytes = question.crawl, question.memory_bytes
    keys = crawl.keys_at_start + crawl.unique_share * crawl.links  # U + pn
    if name == "Polybot":  # a batch is held in memory, as whole URLs
        return ram_bytes, crawl.url_bytes * crawl.url_compression * keys, 0.0
    if name == "Mercator-B":  # memory holds keys and pointers, disk the text of as many URLs
        return ram_bytes, crawl.key_bytes * keys, crawl.url_bytes * ram_bytes / (crawl.key_bytes + crawl.pointer_bytes)
    buckets_bytes = min(
        question.bucket_bytes,
        optimal_disk_bytes(crawl, ram_bytes),
        crawl.links * (crawl.key_bytes + crawl.url_bytes),  # there are never more bytes to check than this
    )
    enough_bytes = max(least_ram_bytes(crawl), sufficient_ram_bytes(crawl, buckets_bytes))
    return min(ram_bytes, enough_bytes), crawl.key_bytes * keys, buckets_bytes
