"""The figures for Prometheus, and a word for whoever asks whether we live.

Read from what the watches know already, so that being scraped costs a crawl nothing. Invariant: a metric's name and
kind never depend on the crawl; crawls are told apart by a label.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fyke.serve.shelf import Shelf
from fyke.serve.watch import CrawlState

Read = Callable[[CrawlState], float]


def _of(name: str) -> Read:
    return lambda standing: float(standing.figures.get("statistics", {}).get(name, 0))


_COUNTERS: dict[str, tuple[str, Read]] = {
    "fyke_pages": ("Pages archived.", _of("pages")),
    "fyke_visits": ("Visits that ended, whatever came of them.", _of("visits")),
    "fyke_bytes": ("Bytes of bodies as the wire had them.", _of("bytes")),
    "fyke_links": ("Links found.", _of("links")),
    "fyke_seconds": ("Time crawled, over all runs.", _of("total_s")),
}
_GAUGES: dict[str, tuple[str, Read]] = {
    "fyke_up": ("Whether the crawl runs and is heard.", lambda standing: float(standing.live)),
    "fyke_paused": ("Whether it is paused.", lambda standing: float(standing.state == "paused")),
    "fyke_told_timestamp_seconds": ("When these figures were told.", lambda standing: standing.at),
    "fyke_in_flight": ("Downloads under way.", _of("in_flight")),
    "fyke_hosts": ("Hosts at the workbench.", _of("hosts")),
    "fyke_hosts_asleep": ("Of those, hosts that rest.", _of("hosts_asleep")),
    "fyke_urls": ("Distinct URLs accepted.", _of("urls")),
    "fyke_waiting": ("URLs that wait to be fetched.", _of("waiting")),
    "fyke_domains": ("Pay-level domains met.", _of("domains")),
    "fyke_archive_bytes": ("Bytes archived.", _of("archive_bytes")),
    "fyke_memory_bytes": ("Resident memory of the crawl.", _of("memory_bytes")),
}


class ShelfCollector(Collector):
    """Metrics of all crawls on `shelf`, as they stand."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def collect(self) -> Iterator[Metric]:
        standings = [(crawl.name, crawl.watch.standing) for crawl in self._shelf]
        for name, (said, read) in _COUNTERS.items():
            counter = CounterMetricFamily(name, said, labels=["crawl"])
            for crawl, standing in standings:
                counter.add_metric([crawl], read(standing))
            yield counter
        for name, (said, read) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, said, labels=["crawl"])
            for crawl, standing in standings:
                gauge.add_metric([crawl], read(standing))
            yield gauge
        outcomes = CounterMetricFamily("fyke_outcomes", "Visits by what came of them.", labels=["crawl", "outcome"])
        queues = GaugeMetricFamily("fyke_queue_urls", "URLs that wait, by where.", labels=["crawl", "queue"])
        for crawl, standing in standings:
            for outcome, count in standing.figures.get("statistics", {}).get("outcomes", {}).items():
                outcomes.add_metric([crawl, outcome], count)
            for queue, count in standing.figures.get("queues", {}).items():
                queues.add_metric([crawl, queue], count)
        yield outcomes
        yield queues


def routes(shelf: Shelf) -> list[Route]:
    """`/metrics` and `/healthz`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ShelfCollector(shelf))

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok", "crawls": len(shelf)})

    return [Route("/metrics", metrics, methods=["GET"]), Route("/healthz", healthz, methods=["GET"])]
