"""The rooms that commands call, each loaded when a command first names it.

Loading is most of what a short command costs, and `fyke --help` or a wrong option needs none of it: so no module of
`fyke.cli` imports a room but by this one. While a room is loaded Ctrl-C ends the process at once and says nothing,
since half a library can answer with anything; from then on it is an exception, as in any Python program.
"""

import signal
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fyke import explain as explain
    from fyke import export as export
    from fyke import plots as plots
    from fyke import progress as progress
    from fyke import quantities as quantities
    from fyke import report as report
    from fyke import serve as serve
    from fyke.archive import directory as directory
    from fyke.archive import inspect as inspect
    from fyke.archive import orders as orders
    from fyke.core import config as config
    from fyke.crawl import loop as loop
    from fyke.crawl import monitor as monitor
    from fyke.crawl import repair as repair
    from fyke.crawl import run as run
    from fyke.lab import simweb as simweb
    from fyke.lab.plan import figure as figure
    from fyke.lab.plan import planner as planner
    from fyke.lab.plan import question as question
    from fyke.lab.plan import report as plan_report
    from fyke.lab.simulate import keep as keep
    from fyke.lab.simulate import report as simulation_report
    from fyke.lab.simulate import session as session
    from fyke.lab.simulate import spec as spec
    from fyke.search import following as following
    from fyke.search import printing as printing
    from fyke.search import searcher as searcher

__all__ = ["plan_report", "simulation_report"]  # the others bear the names they have at home

_HOMES = {
    **{name: f"fyke.{name}" for name in ("explain", "export", "plots", "progress", "quantities", "report", "serve")},
    "simweb": "fyke.lab.simweb",
    "config": "fyke.core.config",
    **{name: f"fyke.archive.{name}" for name in ("directory", "inspect", "orders")},
    **{name: f"fyke.crawl.{name}" for name in ("loop", "monitor", "repair", "run")},
    **{name: f"fyke.lab.plan.{name}" for name in ("figure", "planner", "question")},
    "plan_report": "fyke.lab.plan.report",
    **{name: f"fyke.search.{name}" for name in ("following", "printing", "searcher")},
    **{name: f"fyke.lab.simulate.{name}" for name in ("keep", "session", "spec")},
    "simulation_report": "fyke.lab.simulate.report",
}


def __getattr__(name: str) -> ModuleType:
    if name not in _HOMES:
        raise AttributeError(f"module 'fyke.cli.rooms' has no attribute {name!r}")
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        room = globals()[name] = import_module(_HOMES[name])
    finally:
        if before in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return room
