"""Alerts on whether the query is there at all."""

from __future__ import annotations

from .annotations import (
    TIME,
    WHOLE,
    ask,
    ask_checkpoint,
    ask_failure,
    ask_label,
    ask_reason,
    checkpoint_command,
)
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
_LAST_END = ask("query_ended_timestamp_seconds", TIME, "$memory_window")
_WHY_FAILED = ask_failure("$memory_window", "Its error is unknown") + "."

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
            f"{{{{ $labels.query }}}} of {{{{ $labels.app }}}} failed at {_LAST_END} and has not started"
            f" again. {_WHY_FAILED} Its last run started at {_LAST_START}; the last batch that it committed is"
            f" {_LAST_BATCH}; its checkpoint is {ask_checkpoint()}.",
            "No data is processed; the sources' retention is running.",
            f"Run {checkpoint_command()}: it says what a restart would replay. Fix the cause, then start the"
            " query again.",
            "streamgauge-query",
            keep="cause_keep",
            since="query_ended_timestamp_seconds",
            remembered=True,
            reason=ask_failure("$memory_window", ask_reason()),
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
            "Check whether the driver's process or pod exists and why it ended (OOM, eviction); before a"
            f" restart run {checkpoint_command()}.",
            "streamgauge-fleet",
            keep="cause_keep",
            reason="nobody serves this query's series; when they were last scraped, its verdict was "
            + ask_label("query_state", "state", "$memory_window"),
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
            f"Find out whether it was stopped on purpose; else run {checkpoint_command()} and start it.",
            "streamgauge-fleet",
        ),
        Alert(
            "RestartLoop",
            "critical",
            "(\n"
            "  query:streamgauge_starts:count30m\n"
            "  - on ($Q) (query:streamgauge_clean_ends:count30m or on ($Q) 0 * query:streamgauge_starts:count30m)\n"
            "  >= $restart_count\n"
            ")\n"
            "and on ($Q) changes(query:streamgauge_started:timestamp_seconds[$restart_keep]) > 0\n"
            f"unless on ($Q) ({ENDS_BY_DESIGN} unless on ($Q) {_FAILED_LATELY})",
            None,
            "A streaming query fails or is killed, and starts, repeatedly.",
            f"{{{{ $labels.query }}}} of {{{{ $labels.app }}}} started {{{{ $value | {WHOLE} }}}} times within"
            " $restart_window after an error or an end that nobody saw; clean stops are not counted. The"
            f" last run started at {_LAST_START}; the last batch that was committed is {_LAST_BATCH}.",
            "Each start replays the batch that did not commit; little or nothing gets through.",
            f"Stop the restarts if the same batch fails each time, then run {checkpoint_command()}.",
            "streamgauge-query",
            keep="cause_keep",
            reason=ask_failure(
                "$restart_window",
                ask_reason(
                    "no end was seen: the driver was killed, or exited without stopping its queries"
                ),
            ),
        ),
    ),
)
