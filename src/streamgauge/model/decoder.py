"""From Spark's JSON to records; every quirk of every Spark version ends here.

`decode(text)` takes the JSON of an event in any form that Spark writes it in (listener, event log,
`lastProgress`) and returns one of `Started`, `Progress`, `Idle`, `Terminated`. What Spark leaves out
or fills with -1, NaN, Infinity or null is None. Pure; safe on any thread; raises `UndecodableEvent`
only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from streamgauge.errors import StreamgaugeError
from streamgauge.masking import LONGEST_TEXT, clean, mask

from .causes import condense
from .events import Event, Idle, Operator, Progress, Sink, Source, Started, Terminated
from .kinds import sink_kind
from .phases import FROM_SPARK, PLANS_BATCH, RUNS_BATCH, WHOLE_TRIGGER
from .sources import find_reader, parse, read_count, read_offset
from .sources.marks import rows_between
from .wire import (
    WireEvent,
    WireOperator,
    WireProgress,
    WireSink,
    WireSource,
    to_count,
    to_long,
    to_number,
    to_rate,
    to_seconds,
    to_time,
)

_SHOWN = 200
_MOST_NAMES = 4096  # that are remembered
_SNAPSHOT = "SnapshotLastUploaded."
# The host after a masked password may look like a hash, but is none.
_IDENTITY = re.compile(
    r"(?:\$\$Lambda[\w$/]*)?(?<!\*)@[0-9a-f]{5,16}\b|\$\$Lambda\$?[\w/]*|/0x[0-9a-f]+"
)


class UndecodableEvent(StreamgaugeError, ValueError):  # noqa: N818 - it reads as what it is
    """Text that is no event; the message holds its first 200 characters, masked."""


_decoder = msgspec.json.Decoder(WireEvent)


def decode(text: str | bytes) -> Event:
    """Turn the JSON of one event into its record; raise `UndecodableEvent` if it is none."""
    try:
        return _to_event(_read(text, WireEvent, _decoder), text)
    except Exception as error:  # noqa: BLE001 - hostile text fails in more ways than one can list
        raise UndecodableEvent(f"{_words(error)}: {_show(text)}") from None


def _words(error: Exception) -> str:
    return mask(str(error))[:_SHOWN] or type(error).__name__


def _show(text: str | bytes) -> str:
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    # Mask first: a cut in the middle of a secret would hide what makes it one.
    return clean(mask(shown)[:_SHOWN])


def _read(text: str | bytes, kind: type[Any], decoder: Any = None) -> Any:
    """Decode strictly; where Spark wrote NaN or Infinity, which JSON does not have, leniently."""
    try:
        return decoder.decode(text) if decoder else msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.json.decode(msgspec.json.encode(json.loads(text)), type=kind)


def _to_event(wire: WireEvent, text: str | bytes) -> Event:
    if wire.progress is not None:
        return _to_progress(wire.progress)
    if not wire.id or not wire.run_id:
        raise ValueError("an event without id and run id")
    query_id, run_id = _identity(wire.id), _identity(wire.run_id)
    if wire.batch_id is not msgspec.UNSET:
        return _to_progress(_read(text, WireProgress))
    if not isinstance(wire.exception, msgspec.UnsetType):
        return _to_terminated(query_id, run_id, wire.exception, wire.error_class_on_exception)
    if wire.timestamp is msgspec.UNSET:
        raise ValueError("an event of an unknown kind")
    at = to_time(wire.timestamp)
    if isinstance(
        wire.name, msgspec.UnsetType
    ):  # an idle event never carries it, a started one always does
        return Idle(query_id=query_id, run_id=run_id, at=at)
    return Started(query_id=query_id, run_id=run_id, name=_name(wire.name), at=at)


_cleaned: dict[str, str] = {}  # names as they come, and as they may be shown


def _clean(name: str) -> str:
    """`clean`, remembered: the same few hundred names come with every event."""
    known = _cleaned.get(name)
    if known is None:
        known = clean(name)
        if len(name) <= 512 and len(_cleaned) < _MOST_NAMES:
            _cleaned[name] = known
    return known


def _identity(text: str) -> str:
    return _clean(text)[:64]


def _name(name: str | None) -> str | None:
    return _clean(name) if name else None


def _to_terminated(
    query_id: str, run_id: str, exception: str | None, given: str | None
) -> Terminated:
    text = mask(condense(exception)) if exception else None
    return Terminated(
        query_id=query_id,
        run_id=run_id,
        exception=text,
        error_class=error_class(given, text) if text else None,
    )


_CLASS = re.compile(r"^\s*(?:[\w$]+\.)*([A-Z][\w$]*)\s*(?::|$)", re.MULTILINE)


def error_class(given: str | None, exception: str) -> str:
    """Spark's error class; else the class of the exception, from the first line."""
    if given:
        return re.sub(r"[^\w.]", "_", given)[:100]
    found = _CLASS.match(exception.partition("\n")[0])
    return found[1][:100] if found else "unknown"


def _to_progress(wire: WireProgress) -> Progress:
    phases = {
        FROM_SPARK.get(key) or _snake(key): seconds
        for key, value in (wire.duration_ms or {}).items()
        if key != WHOLE_TRIGGER and (seconds := to_seconds(value)) is not None
    }
    sources = tuple(_to_source(i, source) for i, source in enumerate(wire.sources or ()))
    times = {key: to_time(value) for key, value in (wire.event_time or {}).items()}
    at = to_time(wire.timestamp)
    if at is None:
        raise ValueError(f"a progress event without a usable timestamp ({wire.timestamp!r})")
    whole = to_seconds((wire.duration_ms or {}).get(WHOLE_TRIGGER))
    return Progress(
        query_id=_identity(wire.id),
        run_id=_identity(wire.run_id),
        name=_name(wire.name),
        at=at,
        batch_id=wire.batch_id,
        seconds=whole if whole is not None else to_seconds(wire.batch_duration),
        input_rows=_total(to_count(wire.num_input_rows), [s.rows for s in sources]),
        input_rate=_total(to_rate(wire.input_rows_per_second), [s.input_rate for s in sources]),
        processed_rate=_total(
            to_rate(wire.processed_rows_per_second), [s.processed_rate for s in sources]
        ),
        phases=phases,
        # 1970-01-01T00:00:00.000Z is Spark's way to say that there is no watermark yet
        watermark=times.get("watermark") or None,
        event_min=times.get("min"),
        event_avg=times.get("avg"),
        event_max=times.get("max"),
        operators=tuple(_to_operator(i, op) for i, op in enumerate(wire.state_operators or ())),
        sources=sources,
        sink=_to_sink(wire.sink or WireSink()),
        observed=_observed(wire.observed_metrics or {}),
        has_data=any(source.moved for source in sources),
        replayed=RUNS_BATCH in phases and not PLANS_BATCH & phases.keys(),
    )


def _total(whole: Any, parts: list[Any]) -> Any:
    """Spark's own sum; the event log leaves it out, so add up its parts when all are known."""
    if whole is not None or not parts or None in parts:
        return whole
    return sum(parts)


def _to_source(index: int, wire: WireSource) -> Source:
    reader = find_reader(wire.description)
    start, end, latest = (
        _offset(raw) for raw in (wire.start_offset, wire.end_offset, wire.latest_offset)
    )
    began, reached, available = (read_offset(reader, text) for text in (start, end, latest))
    metrics = wire.metrics or {}
    return Source(
        label=f"{index}-{reader.kind}",
        kind=reader.kind,
        description=_describe(wire.description),
        start=start,
        end=end,
        latest=latest,
        moved=start != end
        and (began.marks != reached.marks if reached.marks else parse(start) != parse(end)),
        rows=to_count(wire.num_input_rows),
        input_rate=to_rate(wire.input_rows_per_second),
        processed_rate=to_rate(wire.processed_rows_per_second),
        began=began.marks,
        reached=reached.marks,
        available=available.marks,
        backlog=rows_between(reached.marks, available.marks),
        fixed=reader.fixed(wire.description),
        files=read_count(metrics, "numFilesOutstanding"),
        bytes=read_count(metrics, "numBytesOutstanding"),
        version=reached.version,
        versions=_difference(reached.version, available.version),
        metrics={_clean(k): _clean(str(v)) for k, v in metrics.items()},
    )


def _offset(raw: msgspec.Raw) -> str | None:
    """An offset's text; some Spark versions wrap it in a string, and null as the word."""
    text = bytes(raw).decode()
    if text.startswith('"'):
        text = msgspec.json.decode(text, type=str)
    return None if text in {"null", "None", ""} else text


def _difference(before: int | None, after: int | None) -> float | None:
    if before is None or after is None or after < before:
        return None
    return float(after - before)


def _to_operator(index: int, wire: WireOperator) -> Operator:
    # Spark 3.5 has no name for the session window's operator; 4.x calls it so.
    name = wire.operator_name
    name = "sessionWindowStateStoreSaveExec" if name == "defaultName" else _clean(name)
    custom: dict[str, float] = {}
    snapshots: dict[str, int] = {}
    for key, value in (wire.custom_metrics or {}).items():
        number = to_long(value)
        if number is None:
            continue
        known = _cleaned.get(key)  # most of an event's names are in here: save the calls
        if known is None and key.startswith(_SNAPSHOT):
            snapshots[_clean(key.removeprefix(_SNAPSHOT))] = int(number)
        else:
            custom[known or _clean(key)] = number
    return Operator(
        label=f"{index}-{name}",
        name=name,
        rows=to_count(wire.num_rows_total),
        memory=to_count(wire.memory_used_bytes),
        instances=to_count(wire.num_state_store_instances),
        partitions=to_count(wire.num_shuffle_partitions),
        updated=to_count(wire.num_rows_updated),
        removed=to_count(wire.num_rows_removed),
        dropped=to_count(wire.num_rows_dropped_by_watermark),
        commit_seconds=to_seconds(wire.commit_time_ms),
        update_seconds=to_seconds(wire.all_updates_time_ms),
        removal_seconds=to_seconds(wire.all_removals_time_ms),
        custom=custom,
        snapshot_versions=snapshots,
    )


def _to_sink(wire: WireSink) -> Sink:
    return Sink(
        kind=sink_kind(wire.description),
        description=_describe(wire.description),
        rows=to_count(wire.num_output_rows),
    )


def _describe(description: str) -> str:
    """A description that is the same in every run: no secrets, no identity hashes."""
    # One more than `mask` takes: it must know that there was more, since the cut may fall into a secret.
    return _describe_front(description[: LONGEST_TEXT + 1])


@lru_cache(maxsize=256)
def _describe_front(description: str) -> str:
    # Mask first: what looks like a hash may be what makes a password known as one.
    return clean(_IDENTITY.sub("", mask(description)))


def _observed(metrics: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The numbers of `df.observe()`; other types can't be series."""
    return {
        _clean(name): {
            _clean(str(field)): number
            for field, value in fields.items()
            if (number := to_number(value)) is not None
        }
        for name, fields in metrics.items()
        if isinstance(fields, dict)
    }


def _snake(name: str) -> str:
    return _clean(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
