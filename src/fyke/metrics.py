"""The figures of crawls for Prometheus: their names, and the text in which it reads them.

Asked by the crawl itself (`fyke crawl --metrics`) and by `fyke serve`, which hears the same figures over the control
socket, so that a board shows both alike. Invariant: a metric's name and kind never depend on the crawl; crawls are told
apart by a label. The text is format 0.0.4, which every version of Prometheus reads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fyke.archive.statistics import CrawlStatistics

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class CrawlFigures:
    """How the crawl called `name` stands."""

    name: str
    live: bool = True  # whether the crawl itself told them, not its checkpoint
    paused: bool = False
    at: float = 0.0  # unix seconds
    statistics: CrawlStatistics = field(default_factory=CrawlStatistics)


Read = Callable[[CrawlFigures], float]
Sample = tuple[dict[str, str], float]  # labels beside the crawl's name, and the value


def _of(name: str) -> Read:
    return lambda told: float(getattr(told.statistics, name))


_COUNTERS: dict[str, tuple[str, Read]] = {
    "fyke_pages_total": ("Pages archived.", _of("pages")),
    "fyke_visits_total": ("Visits that ended, with any outcome.", _of("visits")),
    "fyke_bytes_total": ("Bytes of bodies on the wire.", _of("bytes")),
    "fyke_links_total": ("Links found.", _of("links")),
    "fyke_seconds_total": ("Time crawled, over all runs.", _of("total_s")),
}
_GAUGES: dict[str, tuple[str, Read]] = {
    "fyke_up": ("1 if the crawl runs and reports, otherwise 0.", lambda told: float(told.live)),
    "fyke_paused": ("1 if the crawl is paused, otherwise 0.", lambda told: float(told.paused)),
    "fyke_told_timestamp_seconds": ("Time of these figures.", lambda told: told.at),
    "fyke_in_flight": ("Downloads under way.", _of("in_flight")),
    "fyke_hosts": ("Hosts at the workbench.", _of("hosts")),
    "fyke_hosts_asleep": ("Hosts at the workbench that rest.", _of("hosts_asleep")),
    "fyke_urls": ("Distinct URLs accepted.", _of("urls")),
    "fyke_waiting": ("URLs that wait to be fetched.", _of("waiting")),
    "fyke_domains": ("Pay-level domains met.", _of("domains")),
    "fyke_archive_bytes": ("Bytes archived.", _of("archive_bytes")),
    "fyke_memory_bytes": ("Resident memory of the crawl.", _of("memory_bytes")),
}


def exposition(crawls: Sequence[CrawlFigures]) -> bytes:
    """Return the metrics of `crawls`, as Prometheus reads them."""
    return "".join(_families(crawls)).encode()


def _families(crawls: Sequence[CrawlFigures]) -> Iterator[str]:
    for kind, table in (("counter", _COUNTERS), ("gauge", _GAUGES)):
        for name, (said, read) in table.items():
            yield _family(name, kind, said, [({"crawl": told.name}, read(told)) for told in crawls])
    outcomes = _by_name(crawls, "outcome", lambda told: told.statistics.outcomes)
    queues = _by_name(crawls, "queue", lambda told: told.statistics.queues)
    yield _family("fyke_outcomes_total", "counter", "Visits by outcome.", outcomes)
    yield _family("fyke_queue_urls", "gauge", "URLs that wait, by queue.", queues)


def _by_name(
    crawls: Iterable[CrawlFigures], label: str, read: Callable[[CrawlFigures], dict[str, int]]
) -> list[Sample]:
    return [({"crawl": told.name, label: name}, float(count)) for told in crawls for name, count in read(told).items()]


def _family(name: str, kind: str, said: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inside}}} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
