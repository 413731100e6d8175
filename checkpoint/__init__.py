"""Checkpoints as evidence: read one, foresee the restart, plan the remedy.

Stands alone: no Spark, no JVM, nothing is ever written. `read_checkpoint` gives a `Checkpoint`;
`make_report`, `forecast`, `make_plan`, `preflight`, `lint` and `diff` answer questions about it.
"""

from streamgauge.model.checkpoint_names import NamesSummary, look_at_names

from .checkpoint import Checkpoint, read_checkpoint
from .describe import describe
from .description import Description, dump_description, load_description
from .diff import diff
from .errors import CannotLookError, CheckpointError
from .evidence import build_evidence, render_evidence
from .forecast import Forecast, forecast
from .lint import RULES, lint
from .plan import make_plan
from .preflight import Preflight, preflight, preflight_query
from .report import Report, make_report
from .restart import Restart
from .store import LocalStore, MemoryStore, RemoteStore, Store, open_store

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
