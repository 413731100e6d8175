"""Alerts on whether the query is there at all."""

from __future__ import annotations

from .annotations import TIME, WHOLE, ask
from .rule import ENDS_BY_DESIGN, Alert, Group

# Of several drivers that served a query, the one that started it last: an older pod's last words
# must neither page nor reassure.
_OF_NEWEST_RUN = (
    "and on ($Q, instance) topk by ($Q) (1, max by ($Q, instance) "
    "(last_over_time(streamgauge_query_started_timestamp_seconds[$memory_window])))"
)
_FAILED_LATELY = (
    'max by ($Q) (max_over_time(streamgauge_query_state{state="failed"}[$restart_window])) == 1'
)
# What is gone has no series; what it last said is remembered.
_LAST_START = ask("query_started_timestamp_seconds", TIME, "$memory_window")
_LAST_BATCH = ask("last_committed_batch_id", WHOLE, "$memory_window")
_LAST_COMMIT = ask("last_commit_timestamp_seconds", TIME, "$memory_window")

AVAILABILITY = Group(
    "availability",
    alerts=(
        Alert(
            "QueryFailed",
            "critical",
            "max by ($Q) (\n"
            '  last_over_time(streamgauge_query_state{state="failed"}[$memory_window]) == 1\n'
            f"  {_OF_NEWEST_RUN}\n"
            ")\n"
            "unless on ($Q) query:streamgauge_active:max == 1",
            "failed_for",
            "A streaming query ended with an error and is not running.",
            "{{ $labels.query }} of {{ $labels.app }} failed and has not started again. Its last run"
            f" started at {_LAST_START}; the last batch that it committed is {_LAST_BATCH}.",
            "No data is processed; the sources' retention is running.",
            "Read the error class and the failed batch on the dashboard, then run"
            " `streamgauge checkpoint restart` before starting the query again.",
            "streamgauge-query",
            keep="cause_keep",
        ),
        Alert(
            "QueryVanished",
            "critical",
            "max by ($Q) (\n"
            "  last_over_time(streamgauge_query_active[$memory_window]) == 1\n"
            f"  {_OF_NEWEST_RUN}\n"
            ")\n"
            "unless on ($Q) query:streamgauge_active:max\n"
            f"unless on ($Q) {ENDS_BY_DESIGN}",
            "vanished_for",
            "A streaming query was running when its driver was last seen, and the driver is gone.",
            "{{ $labels.query }} of {{ $labels.app }} was running, and then nothing served its"
            " series any more: the driver was killed, lost its node, or can't be reached. The last"
            f" batch that was seen committed is {_LAST_BATCH}, at {_LAST_COMMIT}.",
            "No data is processed, unless the driver is alive and only out of Prometheus' reach.",
            "Look whether the driver's process or pod exists and why it ended (OOM, eviction).",
            "streamgauge-fleet",
            keep="cause_keep",
        ),
        Alert(
            "QueryMissing",
            "critical",
            "(\n"
            "  max by ($Q) (streamgauge_query_expected)\n"
            "  or on ($Q) max by ($Q) (last_over_time(streamgauge_query_expected[$memory_window]))\n"
            ") == 1\n"
            "unless on ($Q) query:streamgauge_active:max == 1",
            "missing_for",
            "A query that is declared as expected is not running.",
            "{{ $labels.query }} of {{ $labels.app }} is in the agent's list of expected queries and"
            f" has not been running for $missing_for. Its last commit was at {_LAST_COMMIT}.",
            "No data is processed.",
            "Find out whether it was stopped on purpose; else start it.",
            "streamgauge-fleet",
        ),
        Alert(
            "RestartLoop",
            "critical",
            "(\n"
            "  changes(query:streamgauge_started:timestamp_seconds[$restart_window])\n"
            "  + (min_over_time(query:streamgauge_started:timestamp_seconds[$restart_window]) > bool (time() - $restart_window))\n"
            "  >= $restart_count\n"
            "  or on ($Q) sum by ($Q) (increase(streamgauge_query_starts_total[$restart_window])) >= $restart_count\n"
            ")\n"
            f"unless on ($Q) ({ENDS_BY_DESIGN} unless on ($Q) {_FAILED_LATELY})",
            None,
            "A streaming query starts again and again.",
            "{{ $labels.query }} of {{ $labels.app }} started {{ $value | humanize }} times within"
            f" $restart_window. The last run started at {_LAST_START}; the last batch that was"
            f" committed is {_LAST_BATCH}.",
            "Each start replays the batch that did not commit; little or nothing gets through.",
            "Read the error class of the last terminations; stop the restarts if the same batch fails.",
            "streamgauge-query",
            keep="restart_keep",
        ),
    ),
)
