"""The rooms that commands call, each loaded when a command first names it.

Loading is most of what a short command costs, and `fyke --help` or a wrong option needs none of it. So no module of
`fyke.cli` imports a room except through this one. While a room is loaded Ctrl-C ends the process at once and says
nothing, because a half-loaded library may fail in any way; from then on it is an exception, as in any Python program.
"""

import signal
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from fyke.core.errors import MissingExtra

if TYPE_CHECKING:
    from fyke import explain as explain
    from fyke import export as export
    from fyke import plots as plots
    from fyke import progress as progress
    from fyke import quantities as quantities
    from fyke import serve as serve
    from fyke.archive import directory as directory
    from fyke.archive import inspect as inspect
    from fyke.archive import lost as lost
    from fyke.archive import moving as moving
    from fyke.archive import orders as orders
    from fyke.core import config as config
    from fyke.core import hours as hours
    from fyke.core import seeds as seeds
    from fyke.crawl import loop as loop
    from fyke.crawl import monitor as monitor
    from fyke.crawl import owed as owed
    from fyke.crawl import passes as passes
    from fyke.crawl import repair as repair
    from fyke.crawl import run as run
    from fyke.crawl import summary as summary
    from fyke.export import copying as copying
    from fyke.export import extracting as extracting
    from fyke.export import filling as filling
    from fyke.lab import simweb as simweb
    from fyke.lab.plan import figure as figure
    from fyke.lab.plan import planner as planner
    from fyke.lab.plan import question as question
    from fyke.lab.plan import report as plan_report
    from fyke.lab.simulate import keep as keep
    from fyke.lab.simulate import report as simulation_report
    from fyke.lab.simulate import session as session
    from fyke.lab.simulate import spec as spec
    from fyke.report import broken as broken
    from fyke.report import cloaking as cloaking
    from fyke.report import page as report
    from fyke.report import sql as sql
    from fyke.rewrite import learner as learner
    from fyke.search import damage as damage
    from fyke.search import following as following
    from fyke.search import printing as printing
    from fyke.search import searcher as searcher

__all__ = ["plan_report", "report", "simulation_report"]  # the others have the names of their modules

_HOMES = {
    **{name: f"fyke.{name}" for name in ("explain", "export", "plots", "progress", "quantities", "serve")},
    **{name: f"fyke.export.{name}" for name in ("copying", "extracting", "filling")},
    "simweb": "fyke.lab.simweb",
    **{name: f"fyke.core.{name}" for name in ("config", "hours", "seeds")},
    **{name: f"fyke.archive.{name}" for name in ("directory", "inspect", "lost", "moving", "orders")},
    **{name: f"fyke.crawl.{name}" for name in ("loop", "monitor", "owed", "passes", "repair", "run", "summary")},
    **{name: f"fyke.lab.plan.{name}" for name in ("figure", "planner", "question")},
    "plan_report": "fyke.lab.plan.report",
    **{name: f"fyke.report.{name}" for name in ("broken", "cloaking", "sql")},
    "report": "fyke.report.page",
    "learner": "fyke.rewrite.learner",
    **{name: f"fyke.search.{name}" for name in ("damage", "following", "printing", "searcher")},
    **{name: f"fyke.lab.simulate.{name}" for name in ("keep", "session", "spec")},
    "simulation_report": "fyke.lab.simulate.report",
}


_EXTRAS = {  # rooms that need more packages than a crawl, and the extra with these
    **dict.fromkeys(("broken", "figure", "plots", "report", "session", "simulation_report", "sql"), "report"),
    **dict.fromkeys(("following", "printing", "searcher"), "search"),
    "copying": "store",
    "filling": "database",
    "serve": "serve",
}


def __getattr__(name: str) -> ModuleType:
    if name not in _HOMES:
        raise AttributeError(f"module 'fyke.cli.rooms' has no attribute {name!r}")
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        room = globals()[name] = import_module(_HOMES[name])
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(name)
        if extra is None or (error.name or "fyke").partition(".")[0] == "fyke":
            raise
        raise MissingExtra(error, extra) from None
    finally:
        if before in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return room
