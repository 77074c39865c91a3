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
    from fyke import export as export
    from fyke import plots as plots
    from fyke import report as report
    from fyke import serve as serve
    from fyke import simweb as simweb
    from fyke.core import config as config
    from fyke.crawl import directory as directory
    from fyke.crawl import explain as explain
    from fyke.crawl import inspect as inspect
    from fyke.crawl import loop as loop
    from fyke.crawl import monitor as monitor
    from fyke.crawl import orders as orders
    from fyke.crawl import repair as repair
    from fyke.crawl import run as run
    from fyke.plan import figure as figure
    from fyke.plan import planner as planner
    from fyke.plan import quantities as quantities
    from fyke.plan import question as question
    from fyke.plan import report as plan_report
    from fyke.search import following as following
    from fyke.search import searcher as searcher
    from fyke.search import terminal as terminal
    from fyke.simulate import keep as keep
    from fyke.simulate import report as simulation_report
    from fyke.simulate import session as session
    from fyke.simulate import spec as spec

__all__ = ["plan_report", "simulation_report"]  # the others bear the names they have at home

_HOMES = {
    **{name: f"fyke.{name}" for name in ("export", "plots", "report", "serve", "simweb")},
    "config": "fyke.core.config",
    **{
        name: f"fyke.crawl.{name}"
        for name in ("directory", "explain", "inspect", "loop", "monitor", "orders", "repair", "run")
    },
    **{name: f"fyke.plan.{name}" for name in ("figure", "planner", "quantities", "question")},
    "plan_report": "fyke.plan.report",
    **{name: f"fyke.search.{name}" for name in ("following", "searcher", "terminal")},
    **{name: f"fyke.simulate.{name}" for name in ("keep", "session", "spec")},
    "simulation_report": "fyke.simulate.report",
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
