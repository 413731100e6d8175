"""Checkpoints as evidence: read one, foresee the restart, plan the remedy.

Stands alone: no Spark, no JVM, nothing is ever written. `read_checkpoint` gives a `Checkpoint`;
`make_report`, `forecast`, `make_plan`, `preflight`, `lint` and `diff` answer questions about it.

The rooms, each importing only those before it:

    reader           what is on disk, as data
    audit            faults and differences of checkpoints
    restart          what Spark will do
    preflight_check  new code against the checkpoint
    remedies         ways out, step by step
    evidence         everything known of one query, in one record
    render           text and JSON
    commands         the command line
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.model.checkpoint_names import NamesSummary, look_at_names

    from .audit.diff import diff
    from .audit.lint import RULES, lint
    from .errors import CannotLookError, CheckpointError
    from .evidence.bundle import build_evidence
    from .preflight_check.compare import Preflight, preflight, preflight_query
    from .preflight_check.describe import describe
    from .preflight_check.description import Description, dump_description, load_description
    from .reader.checkpoint import Checkpoint, read_checkpoint
    from .reader.report import Report, make_report
    from .reader.store import LocalStore, MemoryStore, RemoteStore, Store, open_store
    from .remedies.plan import make_plan
    from .render.evidence_text import render_evidence
    from .restart.circumstances import Restart
    from .restart.forecast import Forecast, forecast

__all__ = [
    "RULES",
    "CannotLookError",
    "Checkpoint",
    "CheckpointError",
    "Description",
    "Forecast",
    "LocalStore",
    "MemoryStore",
    "NamesSummary",
    "Preflight",
    "RemoteStore",
    "Report",
    "Restart",
    "Store",
    "build_evidence",
    "describe",
    "diff",
    "dump_description",
    "forecast",
    "lint",
    "load_description",
    "look_at_names",
    "make_plan",
    "make_report",
    "open_store",
    "preflight",
    "preflight_query",
    "read_checkpoint",
    "render_evidence",
]
_HOMES = {  # public name → module it lives in
    "CannotLookError": "errors",
    "Checkpoint": "reader.checkpoint",
    "CheckpointError": "errors",
    "Description": "preflight_check.description",
    "Forecast": "restart.forecast",
    "LocalStore": "reader.store",
    "MemoryStore": "reader.store",
    "NamesSummary": "streamgauge.model.checkpoint_names",
    "Preflight": "preflight_check.compare",
    "RULES": "audit.lint",
    "RemoteStore": "reader.store",
    "Report": "reader.report",
    "Restart": "restart.circumstances",
    "Store": "reader.store",
    "build_evidence": "evidence.bundle",
    "describe": "preflight_check.describe",
    "diff": "audit.diff",
    "dump_description": "preflight_check.description",
    "forecast": "restart.forecast",
    "lint": "audit.lint",
    "load_description": "preflight_check.description",
    "look_at_names": "streamgauge.model.checkpoint_names",
    "make_plan": "remedies.plan",
    "make_report": "reader.report",
    "open_store": "reader.store",
    "preflight": "preflight_check.compare",
    "preflight_query": "preflight_check.compare",
    "read_checkpoint": "reader.checkpoint",
    "render_evidence": "render.evidence_text",
}


if not TYPE_CHECKING:  # mypy would take any name for a module of this package

    def __getattr__(name: str) -> Any:
        """Import a public name when it is asked for: a reader of files needs no forecast."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = _HOMES[name]
        module = import_module(home if home.startswith("streamgauge.") else f".{home}", __name__)
        return getattr(module, name)
