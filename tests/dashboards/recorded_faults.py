"""The faults of the fault lab as the recording has them: which query has it, and what proves that it came.

A sign is PromQL, asked at every step of the recording; an answer at one of them proves the fault. `$Q` in it
stands for the matcher of the query. The lab itself says which faults there are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAB = Path(__file__).resolve().parent.parent / "faults"
BEFORE = "80s"  # a change is one against what was so long ago
STEP = 5.0  # seconds


@dataclass(frozen=True)
class Recorded:
    """A fault of the lab in the recording."""

    fault: str
    query: str
    sign: str

    @property
    def expr(self) -> str:
        """The sign of this query."""
        return self.sign.replace("$Q", f'query="{self.query}"')


def _state(state: str) -> str:
    return f'streamgauge_query_state{{$Q, state="{state}"}} == 1'


def _rate(name: str, ago: str = "") -> str:
    return f"rate(streamgauge_{name}{{$Q}}[1m]{f' offset {ago}' if ago else ''})"


def _mean(ago: str = "") -> str:
    spent, count = ("batch_duration_seconds_sum", "batch_duration_seconds_count")
    return f"({_rate(spent, ago)} / {_rate(count, ago)})"


def _cost(ago: str = "") -> str:
    spent, rows = ("batch_duration_seconds_sum", "input_rows_total")
    return f"({_rate(spent, ago)} / {_rate(rows, ago)})"


_ROWS = "input_rows_total"
_WATERMARK = "streamgauge_watermark_timestamp_seconds{$Q}"
_STARTED = "streamgauge_query_started_timestamp_seconds{$Q}"
_HEARTBEAT = "time() - streamgauge_agent_heartbeat_timestamp_seconds"
_STOPPED = 'streamgauge_query_terminations_total{$Q, outcome="stopped"}'
_FAILED = 'streamgauge_query_terminations_total{$Q, outcome="failed"}'

RECORDED = (
    Recorded(
        "a foreachBatch that hangs",
        "invoices",
        f"{_state('stalled')} and on (query) streamgauge_inflight_batch_seconds{{$Q}} > 30"
        ' unless on (query) streamgauge_inflight_tasks{$Q, state="running"} > 0',
    ),
    Recorded(
        "a query that dies at once",
        "exports",
        'min_over_time(streamgauge_query_state{$Q, state="failed"}[1m]) == 1'
        f" and on (query) sum by (query) ({_FAILED}) == 1",
    ),
    Recorded(
        "a sink that fails every third batch",
        "refunds",
        f"sum by (query) (increase({_FAILED}[2m])) > 2"
        " and on (query) increase(streamgauge_batches_replayed_total{$Q}[2m]) > 0",
    ),
    Recorded(
        "a crash loop of the whole driver",
        "parcels",
        f"changes({_STARTED}[5m]) >= 2 and on (query) streamgauge_query_starts_total{{$Q}} == 1",
    ),
    Recorded(
        "the driver killed with SIGKILL",
        "ledger",
        "last_over_time(streamgauge_query_active{$Q}[5m]) == 1"
        " and on (instance) max_over_time(up[1m]) == 0",
    ),
    Recorded(
        "a source with no new data for long",
        "returns",
        'min_over_time(streamgauge_query_state{$Q, state="idle"}[2m]) == 1'
        " and on (query) increase(streamgauge_input_rows_total{$Q}[2m]) == 0"
        " and on (query) streamgauge_input_rows_total{$Q} > 0",
    ),
    Recorded(
        "a long trigger interval",
        "reports",
        "streamgauge_trigger_interval_seconds{$Q} == 60"
        " and on (query) sum by (query) (increase(streamgauge_batches_total{$Q}[4m])) > 1"
        ' and on (query) max_over_time(streamgauge_query_state{$Q, state="stalled"}[4m]) == 0',
    ),
    Recorded(
        "a large but healthy batch",
        "searches",
        f"{_state('running')}"
        " and on (query) streamgauge_inflight_batch_seconds{$Q} > on (query) streamgauge_silence_budget_seconds{$Q}"
        ' and on (query) streamgauge_inflight_tasks{$Q, state="completed"} > 20',
    ),
    Recorded(
        "catching up after an outage",
        "clicks",
        f"{_state('catching_up')} and on (query) changes({_STARTED}[3m]) > 0"
        " and on (query) deriv(streamgauge_source_backlog_rows{$Q}[20s]) < 0",
    ),
    Recorded(
        "input faster than processing",
        "scans",
        f"{_state('falling_behind')} and on (query) streamgauge_input_rows_per_second{{$Q}}"
        " > on (query) streamgauge_processed_rows_per_second{$Q}",
    ),
    Recorded(
        "a state that grows without a watermark",
        "sessions",
        "delta(streamgauge_state_rows{$Q}[3m]) > 1000"
        " and on (query) increase(streamgauge_state_rows_removed_total{$Q}[3m]) == 0"
        f" unless on (query) {_WATERMARK}",
    ),
    Recorded(
        "a stuck watermark",
        "visits",
        f"changes({_WATERMARK}[1m]) == 0 and on (query) count_over_time({_WATERMARK}[1m]) > 25"
        " and on (query) increase(streamgauge_input_rows_total{$Q}[1m]) > 100"
        f" and on (query) {_WATERMARK} < time()",
    ),
    Recorded("one event from the future", "visits", f"{_WATERMARK} > time() + 1800"),
    Recorded(
        "late rows",
        "orders",
        "increase(streamgauge_state_rows_dropped_by_watermark_total{$Q}[1m]) > 0",
    ),
    Recorded(
        "a batch twice as slow as before",
        "labels",
        f"{_mean()} > 1.5 * {_mean(BEFORE)} and {_rate(_ROWS)} < 1.3 * {_rate(_ROWS, BEFORE)}",
    ),
    Recorded(
        "the same load doubled",
        "labels",
        f"{_mean()} > 1.3 * {_mean(BEFORE)} and {_rate(_ROWS)} > 1.6 * {_rate(_ROWS, BEFORE)}"
        f" and {_cost()} < 1.25 * {_cost(BEFORE)}",
    ),
    Recorded(
        "an availableNow job that ends well",
        "nightly",
        f"{_state('stopped')} and on (query) sum by (query) ({_STOPPED}) == 1"
        ' and on (query) streamgauge_query_info{$Q, trigger="available_now"}'
        " and on (query) streamgauge_input_rows_total{$Q} > 0",
    ),
    Recorded(
        "a planned stop and restart",
        "payments",
        f"changes({_STARTED}[2m]) == 1 and on (query) increase({_STOPPED}[2m]) > 0"
        " and on (query) streamgauge_last_committed_batch_id{$Q}"
        " > on (query) streamgauge_last_committed_batch_id{$Q} offset 1m"
        " unless on (query) streamgauge_checkpoint_resets_total{$Q} > 0",
    ),
    Recorded(
        "a deleted checkpoint",
        "profiles",
        "increase(streamgauge_checkpoint_resets_total{$Q}[1m]) > 0",
    ),
    Recorded(
        "two queries on one checkpoint",
        "audit",
        'count(streamgauge_checkpoint_shared{query=~"audit|audit-second"} == 1) == 2',
    ),
    Recorded(
        "a listener that is removed",
        "ledger",
        f"{_state('blind')} and on (instance) {_HEARTBEAT} < 5"
        " and on (query) streamgauge_query_active{$Q} == 1",
    ),
    Recorded(
        "the Python worker of the agent blocked",
        "ledger",
        f"{_state('blind')} and on (instance) {_HEARTBEAT} > 10",
    ),
    Recorded("Prometheus itself down for a while", "", 'absent_over_time(up{job="spark"}[15s])'),
)

# Faults of the lab that ten minutes of one driver can't hold, or that leave no sign of their own.
NOT_RECORDED = frozenset(
    {
        "a clean stop and exit at once",
        "a clean deployment",
        "a deployment by SIGTERM",
        "spark.stop() in a process that lives on",
        "a new session in the same process",
        "two planned deployments within 13 minutes",
        "a deployment after which the query is missing",
        "a query that breaks after two deployments",
        "a replayed foreachBatch",
        "a replayed foreachBatch with idempotent_sink",
        "a file source that falls behind",
        "a file every three minutes",
        "a clock that steps an hour forward",
        "a hang after a step forward",
        "a clock that steps an hour back",
        "a hang after a step back",
        "blindness with stray events",
        "a retry loop inside a batch",
        "a hang with a long trigger",
        "a full disk in foreachBatch",
        "a JVM that is frozen",
        "a JVM that is killed while Python lives",
        "a long deduplication",
        "a silent source that holds the watermark",
    }
)


def without_sign(ask: Callable[[str], list[Any]]) -> list[str]:
    """The faults that nothing in a recording proves; `ask` is a range query over all of it."""
    return [f"{one.fault} ({one.expr})" for one in RECORDED if not ask(one.expr)]


# ---- what the lab says ---------------------------------------------------------------------


def faults_of_lab() -> dict[str, list[str]]:
    """Each test of the lab with the names of its faults, as its source gives them to `Result` or `warned`.

    A name in a local variable counts: `fault = "…"`.
    """
    return {
        test.name: list(_named(test))
        for path in sorted(LAB.glob("test_*.py"))
        for test in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")
    }


def _named(test: ast.FunctionDef) -> Iterator[str]:
    for one in (node for node in ast.walk(test) if isinstance(node, ast.Assign)):
        if getattr(one.targets[0], "id", "") == "fault" and isinstance(one.value, ast.Constant):
            yield str(one.value.value)
    for call in (node for node in ast.walk(test) if isinstance(node, ast.Call)):
        place = {"Result": 0, "warned": 1}.get(getattr(call.func, "id", ""))
        given = call.args[place] if place is not None and len(call.args) > place else None
        if isinstance(given, ast.Constant):
            yield str(given.value)
