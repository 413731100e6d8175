"""How often rules are evaluated: a warning that waits for minutes anyway is asked for half as often as a page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .rule import Alert, Group


def with_pace(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups, each followed by its warnings that wait as a group of a longer interval."""
    return tuple(part for group in groups for part in _parts(group))


def _parts(group: Group) -> tuple[Group, ...]:
    slow = tuple(alert for alert in group.alerts if _waits(alert))
    if not slow or group.interval != "evaluation_interval":
        return (group,)
    fast = tuple(alert for alert in group.alerts if not _waits(alert))
    rest = replace(group, recordings=(), alerts=slow, part="warnings", interval="warning_interval")
    return (replace(group, alerts=fast), rest) if fast or group.recordings else (rest,)


def _waits(alert: Alert) -> bool:
    return alert.severity == "warning" and alert.hold is not None
