"""The stateful operators of the new code against the state of the checkpoint."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from streamgauge.checkpoint.reader.spark_lines import at_least
from streamgauge.checkpoint.restart import failures

from .differences import (
    KeyTypesUnknown,
    NamesChange,
    OperatorCount,
    OperatorNames,
    TypesChange,
    Untold,
)
from .findings import Effect, Finding, Rule

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint
    from streamgauge.checkpoint.reader.state import Operator
    from streamgauge.checkpoint.reader.state_schema import StateSchema

    from .description import Description, OperatorDescription

_KEY, _VALUE = "key", "value"
_SCHEMA_RULES = {_KEY: Rule.STATE_KEY_SCHEMA, _VALUE: Rule.STATE_VALUE_SCHEMA}
# Spark orders the columns of their keys itself, when it plans the query.
_UNORDERED = ("dedupe", "symmetricHashJoin")


def compare_operators(checkpoint: Checkpoint, plan: Description, line: str) -> list[Finding]:
    """The findings of all operators; other names or numbers hide differences of schemas."""
    before, now = checkpoint.state.operators, plan.operators
    if now is None:
        return [Finding(Rule.OPERATORS, Effect.UNKNOWN, Untold.OPERATORS)] if before else []
    if not before or checkpoint.offsets.latest is None:
        return []
    found = _compare_names(before, now, line)
    if found:
        return [found]
    findings = []
    for old, new in zip(before, now, strict=False):
        findings += _compare_schema(old, new, line)
    return findings


def _compare_names(
    before: tuple[Operator, ...], now: list[OperatorDescription], line: str
) -> Finding | None:
    if at_least(line, "4.0") and all(each.info for each in before):
        old, new = (tuple(each.name for each in every) for every in (before, now))
        if Counter(old) == Counter(new):
            return None
        difference, failure = OperatorNames(old, new), failures.operator_mismatch()
        return Finding(Rule.OPERATORS, Effect.FAILS, difference, failure)
    count = OperatorCount(len(before), len(now))
    if count.now > count.before:
        failure = failures.missing_operator_state(count.before)
        return Finding(Rule.OPERATORS, Effect.FAILS, count, failure)
    if count.now < count.before:
        return Finding(Rule.OPERATORS, Effect.SILENTLY_WRONG, count)
    return None


def _compare_schema(old: Operator, new: OperatorDescription, line: str) -> list[Finding]:
    """Key and value types, as Spark compares them; names, which it does not look at."""
    if old.schema is None or old.keyless:
        return []
    findings: list[Finding] = []
    if new.key_types is None:
        difference = KeyTypesUnknown(new.name)
        findings.append(Finding(Rule.STATE_SCHEMA, Effect.UNKNOWN, difference))
    for part, types in ((_KEY, new.key_types), (_VALUE, new.value_types)):
        found = None if types is None else _compare_part(old.schema, new, part, types, line)
        if found:
            findings.append(found)
    return findings


def _compare_part(
    schema: StateSchema, new: OperatorDescription, part: str, types: list[str], line: str
) -> Finding | None:
    logged = schema.types(part)
    if Counter(types) != Counter(logged) or (_is_ordered(new, part) and types != logged):
        difference = TypesChange(part, new.name, tuple(logged), tuple(types))
        failure = failures.schema_mismatch(part, line)
        return Finding(_SCHEMA_RULES[part], Effect.FAILS, difference, failure)
    names, before = (new.key_names if part == _KEY else new.value_names), schema.names(part)
    if names and None not in names and Counter(names) != Counter(before):
        renamed = NamesChange(part, new.name, tuple(before), tuple(names))
        return Finding(Rule.STATE_NAMES, Effect.UNKNOWN, renamed)
    return None


def _is_ordered(new: OperatorDescription, part: str) -> bool:
    """Whether the order of columns is known before planning."""
    return part == _KEY and not new.name.startswith(_UNORDERED)
