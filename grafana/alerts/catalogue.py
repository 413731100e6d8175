"""The table of rules, in the order of the rule file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .agent import AGENT
from .availability import AVAILABILITY
from .checkpoint import CHECKPOINT
from .event_time import EVENT_TIME
from .lag import LAG
from .memory import with_memory
from .pace import with_pace
from .progress import PROGRESS
from .recordings import BASE, BASELINES, SLICES
from .regression import REGRESSION
from .slo import SLO, SLO_DAYS
from .state import STATE

if TYPE_CHECKING:
    from .rule import Alert, Group, Recording

_TABLE: tuple[Group, ...] = (
    BASE,
    AVAILABILITY,
    PROGRESS,
    LAG,
    EVENT_TIME,
    STATE,
    SLICES,
    BASELINES,
    REGRESSION,
    CHECKPOINT,
    SLO,
    SLO_DAYS,
    AGENT,
)
GROUPS = with_memory(with_pace(_TABLE))

DASHBOARDS = frozenset(
    f"streamgauge-{name}"
    for name in ("fleet", "query", "state", "sources", "checkpoint", "regressions", "slo", "agent")
)


def alerts() -> tuple[Alert, ...]:
    """All alerts, in order."""
    return tuple(alert for group in GROUPS for alert in group.alerts)


def recordings() -> tuple[Recording, ...]:
    """All recording rules, in order."""
    return tuple(rule for group in GROUPS for rule in group.recordings)


def alert_names() -> tuple[str, ...]:
    """Names of alerts, each once; the runbooks' names too."""
    return tuple(dict.fromkeys(alert.full_name for alert in alerts()))
