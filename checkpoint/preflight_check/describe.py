"""Say what a streaming DataFrame is, without starting it: sources, stateful operators, settings.

Reads the analysed plan through the DataFrame's own Py4J objects (classic PySpark); nothing of
pyspark is imported. On Spark Connect the plan is on the server: sources and operators are unknown.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from streamgauge.checkpoint.reader.spark_lines import PINNED
from streamgauge.checkpoint.reader.state_schema import type_name
from streamgauge.masking import mask, mask_all

from .description import Description, OperatorDescription, SourceDescription

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPERATORS = {
    "Aggregate": "stateStoreSave",
    "Deduplicate": "dedupe",
    "DeduplicateWithinWatermark": "dedupeWithinWatermark",
    "Join": "symmetricHashJoin",
    "GlobalLimit": "globalLimit",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithState": "transformWithStateExec",
    "TransformWithStateInPandas": "transformWithStateInPandasExec",  # 4.0's name of the node
    "TransformWithStateInPySpark": "transformWithStateInPySparkExec",
}
_FILES = ("json", "csv", "parquet", "orc", "text", "avro", "xml", "binaryfile")
_PLACES = ("path", "subscribe", "subscribePattern", "assign", "table", "host")
_EXTRA = (
    "spark.sql.streaming.stateStore.checkpointFormatVersion",
    "spark.sql.streaming.stopActiveRunOnRestart",
)


def describe(
    streaming_df: Any,
    *,
    sink: str | None = None,
    output: str | None = None,
    output_mode: str | None = None,
    trigger: str | None = None,
    options: dict[str, str] | None = None,
) -> Description:
    """Describe a streaming DataFrame and how it will be written; starts and plans nothing."""
    session = streaming_df.sparkSession
    plan = _analysed_plan(streaming_df)
    nodes = list(_walk(plan)) if plan is not None else None
    wanted = {key.lower(): str(value).lower() for key, value in (options or {}).items()}
    return Description(
        spark=".".join(str(session.version).split(".")[:2]),
        sources=None if nodes is None else _describe_sources(nodes),
        operators=None if nodes is None else _describe_operators(nodes),
        conf=_describe_conf(session),
        sink=sink,
        output=None if output is None else mask(output),
        output_mode=output_mode,
        trigger=trigger,
        async_progress=None
        if options is None
        else wanted.get("asyncprogresstrackingenabled") == "true",
    )


def _analysed_plan(streaming_df: Any) -> Any:
    frame = streaming_df.__dict__.get("_jdf")
    return None if frame is None else frame.queryExecution().analyzed()


def _walk(node: Any) -> Iterator[Any]:
    """The plan, a node before its children, as Spark numbers its operators."""
    yield node
    for child in _items(node.children()):
        yield from _walk(child)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _describe_sources(nodes: list[Any]) -> list[SourceDescription]:
    """The distinct streaming leaves, in plan order."""
    found: list[SourceDescription] = []
    seen: list[Any] = []
    for node in nodes:
        name = node.nodeName()
        if name not in ("StreamingRelation", "StreamingRelationV2"):
            continue
        if any(node.equals(other) for other in seen):
            continue
        seen.append(node)
        found.append(_describe_v1(node) if name == "StreamingRelation" else _describe_v2(node))
    return found


def _describe_v1(node: Any) -> SourceDescription:
    source = node.dataSource()
    name = str(source.className())
    options = _scala_map(source.options())
    return SourceDescription(_kind(name), None, _places(options), mask_all(options))


def _describe_v2(node: Any) -> SourceDescription:
    given = node.extraOptions()
    options = {str(key): str(given.get(key)) for key in given.keySet().toArray()}
    return SourceDescription(
        _kind(str(node.sourceName())), None, _places(options), mask_all(options)
    )


def _kind(name: str) -> str:
    short = name.rsplit(".", 1)[-1].lower()
    return "file" if short in _FILES else short


def _scala_map(given: Any) -> dict[str, str]:
    pairs = _items(given.toSeq())
    return {str(pair.productElement(0)): str(pair.productElement(1)) for pair in pairs}


def _places(options: dict[str, str]) -> list[str] | None:
    folded = {key.lower(): value for key, value in options.items()}
    return [mask(folded[key.lower()]) for key in _PLACES if key.lower() in folded] or None


def _describe_operators(nodes: list[Any]) -> list[OperatorDescription]:
    return [_describe_operator(node) for node in nodes if _is_stateful(node)]


def _is_stateful(node: Any) -> bool:
    name = node.nodeName()
    if name not in _OPERATORS or not node.isStreaming():
        return False
    return name != "Join" or all(child.isStreaming() for child in _items(node.children()))


def _describe_operator(node: Any) -> OperatorDescription:
    kind = node.nodeName()
    if kind == "Aggregate":
        keys = _items(node.groupingExpressions())
        session = any("session_window" in str(key.sql()) for key in keys)
        name = "sessionWindowStateStoreSaveExec" if session else _OPERATORS[kind]
        types, names = _buffers(node)
        return OperatorDescription(name, _types(keys), types, _names(keys), names)
    if kind.startswith("Deduplicate"):
        keys = _items(node.keys())
        return OperatorDescription(_OPERATORS[kind], _types(keys), key_names=_names(keys))
    if kind == "Join":
        return OperatorDescription(_OPERATORS[kind], _join_types(node))
    if kind == "TransformWithStateInPySpark" and str(node.userFacingDataType()) == "pandas":
        return OperatorDescription(_OPERATORS["TransformWithStateInPandas"])
    return OperatorDescription(_OPERATORS[kind])


def _types(expressions: list[Any]) -> list[str]:
    return [type_name(json.loads(each.dataType().json())) for each in expressions]


def _names(expressions: list[Any]) -> list[str | None]:
    """Names of plain columns; an expression gets its name only when it is planned."""
    return [
        str(each.name()) if each.getClass().getSimpleName() == "AttributeReference" else None
        for each in expressions
    ]


def _join_types(node: Any) -> list[str] | None:
    """Types of the join's keys: the equalities that its condition is made of."""
    condition = node.condition()
    if not condition.isDefined():
        return None
    equal = [each for each in _conjuncts(condition.get()) if each.nodeName() == "EqualTo"]
    return _types([each.left() for each in equal]) or None


def _conjuncts(expression: Any) -> Iterator[Any]:
    if expression.nodeName() != "And":
        yield expression
        return
    yield from _conjuncts(expression.left())
    yield from _conjuncts(expression.right())


def _buffers(node: Any) -> tuple[list[str] | None, list[str | None] | None]:
    """Types and names that the aggregates keep in state; None where one does not say it yet."""
    parts: dict[str, tuple[list[str], list[str | None]]] = {}
    try:
        for result in _items(node.aggregateExpressions()):
            for part in _aggregates(result):
                buffer = _items(part.aggregateFunction().aggBufferAttributes())
                parts[str(part.canonicalized())] = _types(buffer), _names(buffer)
    except Exception:  # noqa: BLE001 - Py4J wraps whatever an aggregate of any version throws
        return None, None
    types = [each for group, _ in parts.values() for each in group]
    return types, [each for _, group in parts.values() for each in group]


def _aggregates(expression: Any) -> Iterator[Any]:
    if expression.getClass().getSimpleName() == "AggregateExpression":
        yield expression
        return
    for child in _items(expression.children()):
        yield from _aggregates(child)


def _describe_conf(session: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in (*PINNED, *_EXTRA):
        with contextlib.suppress(Exception):  # a key that this Spark does not know
            found[key] = str(session.conf.get(key))
    return found
