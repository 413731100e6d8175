"""Sentences for the differences of a preflight. For render, JSON and text properties alone."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.checkpoint.restart.forecast import Override

from .differences import (
    Difference,
    KeyTypesUnknown,
    KindChange,
    NamesChange,
    OperatorCount,
    OperatorNames,
    PlaceChange,
    PlaceUnknown,
    SinkNamed,
    SourceCount,
    TopicsAdded,
    TopicsDropped,
    TopicsUnknown,
    TypesChange,
    Untold,
)

_UNTOLD = {
    Untold.SOURCES: "which sources the code has",
    Untold.OPERATORS: "which stateful operators the code has",
}
_OperatorDifference = OperatorNames | OperatorCount | KeyTypesUnknown | TypesChange | NamesChange
_SourceDifference = (
    SourceCount
    | KindChange
    | PlaceUnknown
    | PlaceChange
    | TopicsUnknown
    | TopicsDropped
    | TopicsAdded
)


def say_difference(found: Difference) -> str:
    """One difference between the code and the checkpoint."""
    match found:
        case Untold():
            return _UNTOLD[found]
        case Override(key, session, checkpoint):
            return f"{key}: {session} → {checkpoint}"
        case SinkNamed(sink, mode):
            return f"sink {sink}, mode {mode or 'unknown'}: Spark does not compare sinks"
        case OperatorNames() | OperatorCount() | KeyTypesUnknown() | TypesChange() | NamesChange():
            return _say_operators(found)
        case _:
            return _say_sources(found)


def _say_sources(found: _SourceDifference) -> str:
    match found:
        case SourceCount(before, now, by_name):
            matched = "; sources are matched by name" if by_name else ""
            return f"{before} in the checkpoint, {now} in the code{matched}"
        case KindChange(source, kinds, kind):
            return f"source {source}: {' or '.join(kinds)} in the checkpoint, {kind} in the code"
        case PlaceUnknown(source):
            return f"source {source}: its old or new folder"
        case PlaceChange(source, folder, outside):
            return f"source {source}: now {folder}, but the checkpoint has {outside}"
        case TopicsUnknown(source):
            return f"source {source}: its topics are not a plain list"
        case TopicsDropped(source, topics):
            return f"source {source}: {', '.join(topics)} is no longer subscribed"
        case TopicsAdded(source, topics):
            return f"source {source}: {', '.join(topics)} starts from its beginning"


def _say_operators(found: _OperatorDifference) -> str:
    match found:
        case OperatorNames(old, new):
            has = ", ".join(new) or "none"
            return f"the checkpoint has {', '.join(old)}; the code has {has}"
        case OperatorCount():
            return _say_operator_count(found)
        case KeyTypesUnknown(operator):
            return f"the types of the key of {operator}"
        case TypesChange(part, operator, logged, types):
            change = f"{_list(logged)} in the checkpoint, {_list(types)} now"
            return f"{part} of {operator}: {change}"
        case NamesChange(part, operator, before, now):
            change = f"{_list(before)} before, {_list(now)} now"
            only = "right only if it is a mere rename, since Spark compares types alone"
            return f"{part} of {operator}: {change}; {only}"


def _say_operator_count(found: OperatorCount) -> str:
    if not found.now:
        return "the code has no stateful operator any more; the state is left behind"
    if found.now > found.before:
        has = f"the code has {found.now}"
        return f"the checkpoint has state of {found.before} operator(s), {has}"
    return f"state of {found.before - found.now} operator(s) is left behind"


def _list(names: Sequence[str | None]) -> str:
    return f"({', '.join(str(each) for each in names)})"
