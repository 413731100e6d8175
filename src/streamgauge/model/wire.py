"""Spark's events as they are on the wire: JSON structs, and what its numbers and times mean.

Only the decoder reads these; past it there is no camelCase. Pure.
"""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any

import msgspec
from msgspec import Struct

# Spark counts in longs; what is larger is no count, and its sum no float.
_LARGEST_COUNT = 2.0**63
_NOTHING = msgspec.Raw(b"null")


class WireSource(Struct, rename="camel"):
    """One source of a batch, with its offsets as raw JSON."""

    description: str = ""
    start_offset: msgspec.Raw = _NOTHING
    end_offset: msgspec.Raw = _NOTHING
    latest_offset: msgspec.Raw = _NOTHING
    num_input_rows: Any = None
    input_rows_per_second: Any = None
    processed_rows_per_second: Any = None
    metrics: dict[str, Any] | None = None


class WireOperator(Struct, rename="camel"):
    """One stateful operator of a batch."""

    operator_name: str = "unknown"
    num_rows_total: Any = None
    num_rows_updated: Any = None
    all_updates_time_ms: Any = None
    num_rows_removed: Any = None
    all_removals_time_ms: Any = None
    commit_time_ms: Any = None
    memory_used_bytes: Any = None
    num_rows_dropped_by_watermark: Any = None
    num_shuffle_partitions: Any = None
    num_state_store_instances: Any = None
    custom_metrics: dict[str, Any] | None = None


class WireSink(Struct, rename="camel"):
    """The sink of a batch."""

    description: str = ""
    num_output_rows: Any = None


class WireProgress(Struct, rename="camel"):
    """The report of one batch."""

    id: str
    run_id: str
    batch_id: int
    timestamp: str
    name: str | None = None
    batch_duration: Any = None
    num_input_rows: Any = None
    input_rows_per_second: Any = None
    processed_rows_per_second: Any = None
    duration_ms: dict[str, Any] | None = None
    event_time: dict[str, Any] | None = None
    state_operators: list[WireOperator] | None = None
    sources: list[WireSource] | None = None
    sink: WireSink | None = None
    observed_metrics: dict[str, Any] | None = None


class WireEvent(Struct, rename="camel"):
    """Any of the four: `progress` tells one, `exception` and `timestamp` tell the others."""

    progress: WireProgress | None = None
    id: str = ""
    run_id: str = ""
    name: str | msgspec.UnsetType | None = msgspec.UNSET
    timestamp: str | msgspec.UnsetType = msgspec.UNSET
    exception: str | msgspec.UnsetType | None = msgspec.UNSET
    error_class_on_exception: str | None = None
    batch_id: Any = msgspec.UNSET


def to_number(value: Any) -> float | None:
    """A finite number, or None; true and false are no numbers here."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def to_long(value: Any) -> float | None:
    """A number that Spark can have counted, or None."""
    if type(value) is int:  # nearly all of them: hundreds with each event
        return float(value) if -_LARGEST_COUNT <= value <= _LARGEST_COUNT else None
    number = to_number(value)
    return None if number is None or abs(number) > _LARGEST_COUNT else number


def to_count(value: Any) -> int | None:
    """A count; -1 is Spark's way to say that it does not know."""
    if type(value) is int:
        return value if 0 <= value <= _LARGEST_COUNT else None
    number = to_long(value)
    return None if number is None or number < 0 else int(number)


def to_rate(value: Any) -> float | None:
    """Rows per second; a negative or infinite one is unknown."""
    number = to_number(value)
    return None if number is None or number < 0 else number


def to_seconds(value: Any) -> float | None:
    """Milliseconds as seconds; a negative duration (a clock set back) is unknown."""
    if type(value) is int:
        return value / 1000.0 if 0 <= value <= _LARGEST_COUNT else None
    number = to_long(value)
    return None if number is None or number < 0 else number / 1000.0


def to_time(text: Any) -> float | None:
    """Seconds since the epoch of Spark's `2026-11-16T02:45:20.848Z`; None if it is not a time."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()
