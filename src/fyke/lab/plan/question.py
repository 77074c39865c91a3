"""The question to the planner: the crawl that a person wants and the machine they have.

`read` makes a `Question` of the command line's options, or says in one line which option cannot be used. Invariant:
every theorem holds for a `Question` that was read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fyke.core.errors import ConfigurationError
from fyke.lab.plan.model import Budgets, Workload, least_ram_bytes
from fyke.quantities import bytes_text, number, read_bytes, read_count, read_share, read_speed

LEAST_BUCKET_DISK_BYTES = 1e12  # of the paper's D(n), section 4.5


@dataclass(frozen=True, slots=True)
class Question:
    """A crawl and a machine, with the paper's values as defaults."""

    pages: float = 8e9  # N
    links_per_page: float = 59.0  # l
    unique_share: float = 1 / 9  # p
    unique_links_per_page: float = 6.5  # L
    keys_at_start: float = 100e6  # U
    url_bytes: float = 110.0  # b
    page_bytes: float = 21.2e3  # as received; section 4.5
    archived_share: float = 0.2  # of the page bytes: gzip shrank the paper's pages to a fifth, section 7.1
    domains: float = 33e6  # V
    mean_budget_pages: float = 11.0  # E[B]
    pages_s: float = 3_100.0  # S, the crawl speed that is asked for
    memory_bytes: float = 8e9  # R
    given_bucket_bytes: float | None = None  # D; None: D(n) of section 4.5
    disk_bytes_s: float = 675e6
    check_share: float = 0.15  # of the disk's speed, for URL checks
    network_bytes_s: float = 125e6

    @property
    def crawl(self) -> Workload:
        """The workload of Theorems 1 to 3."""
        return Workload(
            self.pages,
            self.links_per_page,
            self.unique_share,
            keys_at_start=self.keys_at_start,
            url_bytes=self.url_bytes,
        )

    @property
    def budgets(self) -> Budgets:
        """The budgets of Theorems 4 and 5."""
        return Budgets(
            self.pages, self.pages_s, self.unique_links_per_page, self.url_bytes, self.mean_budget_pages, self.domains
        )

    @property
    def bucket_bytes(self) -> float:
        """D as given, or D(n) = max(pHn, 1 TB): the disk grows with the crawl; section 4.5."""
        if self.given_bucket_bytes is not None:
            return self.given_bucket_bytes
        crawl = self.crawl
        return max(crawl.unique_share * crawl.key_bytes * crawl.links, LEAST_BUCKET_DISK_BYTES)

    @property
    def check_bytes_s(self) -> float:
        """W, the disk speed that URL checks may use."""
        return self.check_share * self.disk_bytes_s


_READERS: dict[str, tuple[str, Callable[[str, str], float]]] = {  # option: field, how it is read
    "--pages": ("pages", read_count),
    "--links": ("links_per_page", read_count),
    "--unique": ("unique_share", read_share),
    "--unique-links": ("unique_links_per_page", read_count),
    "--known": ("keys_at_start", read_count),
    "--url": ("url_bytes", read_bytes),
    "--page": ("page_bytes", read_bytes),
    "--archived": ("archived_share", read_share),
    "--domains": ("domains", read_count),
    "--budget": ("mean_budget_pages", read_count),
    "--rate": ("pages_s", read_count),
    "--memory": ("memory_bytes", read_bytes),
    "--disk": ("given_bucket_bytes", read_bytes),
    "--speed": ("disk_bytes_s", read_speed),
    "--share": ("check_share", read_share),
    "--network": ("network_bytes_s", read_speed),
}


def read(options: Mapping[str, str | None]) -> Question:
    """Return the question that `options`, as typed, ask; None means the paper's value.

    If l or p is given and L is not, L follows from them. Raises `ConfigurationError`.
    """
    values: dict[str, float] = {}
    for option, text in options.items():
        if text is not None:
            field, reader = _READERS[option]
            values[field] = reader(option, text)
    question = Question(**values)
    if "unique_links_per_page" not in values and {"links_per_page", "unique_share"} & values.keys():
        question = Question(**values, unique_links_per_page=question.links_per_page * question.unique_share)
    _check(question)
    return question


def _check(question: Question) -> None:
    least_bytes = least_ram_bytes(question.crawl)
    if question.memory_bytes < least_bytes:
        raise ConfigurationError(
            f"--memory {bytes_text(question.memory_bytes)}: too little for disk checks in batches; give at least"
            f" {bytes_text(least_bytes)}"
        )
    if question.pages < 1:
        raise ConfigurationError(f"--pages {number(question.pages)}: not a crawl; ask for 1 page or more")
    if question.unique_links_per_page < 1:
        raise ConfigurationError(
            f"--links times --unique is {number(question.unique_links_per_page)} new URLs a page: such a crawl runs out"
            " by itself; give 1 or more, or --unique-links"
        )
