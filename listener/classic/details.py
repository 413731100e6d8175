"""How a run is configured, from the JVM's object of it; what this Spark can't answer is unknown."""

from __future__ import annotations

import re
from typing import Any

from streamgauge.masking import clean, mask
from streamgauge.model.kinds import sink_kind
from streamgauge.model.observations import RunDetails

from .application import describe_application
from .jvm import attempt, require_context

_TRIGGERS = {
    "ProcessingTimeTrigger": "processing_time",
    "AvailableNowTrigger": "available_now",
    "OneTimeTrigger": "once",
    "ContinuousTrigger": "continuous",
    "RealTimeTrigger": "real_time",
}
_MOST_PLAN_NODES = 1000  # on the way to its watermarks
_PROVIDERS = {"RocksDBStateStoreProvider": "rocksdb", "HDFSBackedStateStoreProvider": "hdfs"}


def read_details(execution: Any, query_id: str, run_id: str) -> RunDetails:
    """Read them; raises `ApplicationStopped` and `DriverUnreachable` only. The watchdog's thread."""
    application = describe_application(require_context())
    trigger, trigger_seconds = _trigger(attempt(lambda: execution.trigger().toString()))
    conf = attempt(lambda: execution.sparkSessionForStream().sessionState().conf())
    idle_ms = attempt(conf.streamingNoDataProgressEventInterval) if conf is not None else None
    provider = attempt(conf.stateStoreProviderClass) if conf is not None else None
    sink = attempt(lambda: execution.sink().toString())
    root = attempt(lambda: str(execution.resolvedCheckpointRoot()))
    name = attempt(execution.name)
    return RunDetails(
        query_id=query_id,
        run_id=run_id,
        name=clean(name) if name else None,
        app_id=application.app_id,
        spark_version=application.spark_version,
        checkpoint=mask(root) if root else None,
        trigger=trigger,
        trigger_seconds=trigger_seconds,
        idle_seconds=None if idle_ms is None else idle_ms / 1000.0,
        output_mode=attempt(lambda: str(execution.outputMode().toString())),
        sink=sink_kind(sink) if sink else None,
        state_provider=_provider(provider),
        watermark_delay=attempt(lambda: _watermark_delay(execution)),
    )


def _trigger(text: str | None) -> tuple[str, float | None]:
    """Kind and interval of `ProcessingTimeTrigger(5000)`; an interval only where it is periodic."""
    found = re.match(r"(\w+?)\$?(?:\((\d+)\))?(?:@\w+)?$", text or "")
    kind = _TRIGGERS.get(found[1], "unknown") if found else "unknown"
    periodic = kind in {"processing_time", "real_time"} and found is not None and found[2]
    return kind, float(found[2]) / 1000.0 if periodic and found else None


def _watermark_delay(execution: Any) -> float | None:
    """Largest delay of the plan as it was analyzed at the start; nothing is planned for this."""
    catalyst = require_context()._jvm.org.apache.spark.sql.catalyst  # noqa: SLF001
    wanted = catalyst.trees.TreePattern.EVENT_TIME_WATERMARK()
    pending, delays = [execution.analyzedPlan()], []
    for _ in range(_MOST_PLAN_NODES):
        if not pending:
            break
        node = pending.pop()
        if not node.containsPattern(wanted):
            continue
        if node.nodeName() == "EventTimeWatermark":
            delays.append(catalyst.plans.logical.EventTimeWatermark.getDelayMs(node.delay()))
        children = node.children()
        pending += [children.apply(number) for number in range(children.size())]
    return max(delays) / 1000.0 if delays and not pending else None


def _provider(class_name: str | None) -> str | None:
    """Short name of a state store provider: rocksdb, hdfs, or the class."""
    if not class_name:
        return None
    simple = class_name.rpartition(".")[2]
    return _PROVIDERS.get(simple, clean(simple))
