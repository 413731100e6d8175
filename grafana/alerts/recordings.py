"""Series that are computed once: who is alerted for, how old things are, what is usual."""

from __future__ import annotations

from .rule import APP_OF_INSTANCE, Group, Recording

_STARTED = "streamgauge_query_started_timestamp_seconds"
_ENDED = "streamgauge_query_ended_timestamp_seconds"
_CLOCK = "streamgauge_agent_clock_timestamp_seconds"
_OWNER = "max by ($Q, team, env, tier, trigger, checkpoint) (\n  {} * on ($Q, instance) group_left () {}\n)"
_OWNERS = "last_over_time(query:streamgauge_owner:started_timestamp_seconds{}[$memory_window])"
_FAILURE = "max by ($Q, error_class, cause_class, message) (\n  {} * on ($Q, instance) group_left () max by ($Q, instance) ({})\n)"
# A stop whose outcome is unknown has a reason; a clean one has none.
_CLEAN_END = (
    "max by ($Q) (\n"
    "  {ended}\n"
    "  and on ($Q, instance) {stopped} == 1\n"
    "  unless on ($Q, instance) {unknown}\n"
    ")"
)


def _seen(series: str) -> str:
    """What was scraped within the last evaluations: a driver that died between two of them counts."""
    return f"last_over_time({series}[$seen_window])"


def _count_changes(series: str) -> str:
    """How many values a recorded timestamp had within the window, less one from before it."""
    return (
        f"changes({series}[$restart_window])\n"
        f"+ (min_over_time({series}[$restart_window]) > bool (time() - $restart_window))"
    )


def _larger_of(one: str, other: str) -> str:
    """The larger of two vectors per query; where one is absent, the other."""
    parts = [
        f'  label_replace({expr}, "of", "{name}", "", "")'
        for name, expr in (("one", one), ("other", other))
    ]
    return "max by ($Q) (\n" + "\n  or\n".join(parts) + "\n)"


BASE = Group(
    "rules",
    recordings=(
        Recording(
            "query:streamgauge_active:max",
            "max by ($Q) (streamgauge_query_active)",
            "1 while the query runs, 0 once it ended; absent when nobody serves it",
        ),
        Recording(
            "query:streamgauge_started:timestamp_seconds",
            f"max by ($Q) ({_STARTED})\nor on ($Q) max by ($Q) ({_seen(_STARTED)})",
            "start of the newest run; its changes count restarts, also those of the whole driver",
        ),
        Recording(
            "query:streamgauge_alerting_enabled:min",
            "min by ($Q) (streamgauge_alerting_enabled)\n"
            f"or on ($Q) min by ($Q) ({_seen('streamgauge_alerting_enabled')})",
            "0 where somebody opted out",
        ),
        # The value is the start, so that of two infos at a restart the newer one can be taken.
        Recording(
            "query:streamgauge_owner:started_timestamp_seconds",
            _OWNER.format("streamgauge_query_info", f"max by ($Q, instance) ({_STARTED})")
            + "\nor on ($Q) "
            + _OWNER.format(
                _seen("streamgauge_query_info"), f"max by ($Q, instance) ({_seen(_STARTED)})"
            ),
            "owner, trigger and checkpoint of the query, as of its newest start",
        ),
        # Of two infos of one run, the later one knows the checkpoint.
        Recording(
            "query:streamgauge_alerting:info",
            "(\n"
            "  topk by ($Q) (1, "
            + _OWNERS.format('{checkpoint!=""}')
            + " + 0.001 or "
            + _OWNERS.format('{checkpoint=""}')
            + ") >= bool 0\n"
            "  or on ($Q) last_over_time(query:streamgauge_active:max[$memory_window]) >= bool 0\n"
            "  or on ($Q) max by ($Q) (streamgauge_query_expected) >= bool 0\n"
            ")\n"
            "unless on ($Q) last_over_time(query:streamgauge_alerting_enabled:min[$memory_window]) == 0",
            "one for each query that is alerted for, with owner, trigger and checkpoint; every alert is joined with it",
        ),
        Recording(
            "app:streamgauge_owner:info",
            "topk by ($A) (1, count by ($A, team, env, tier) (query:streamgauge_alerting:info)) >= bool 0\n"
            "or on ($A) max by ($A) (last_over_time(streamgauge_build_info[$memory_window]))",
            "who owns most of an application's queries",
        ),
        Recording(
            "query:streamgauge_silence_budget:seconds",
            "clamp_min(max by ($Q) (streamgauge_silence_budget_seconds), $stalled_seconds)",
            "how long the query may be silent",
        ),
        Recording(
            "query:streamgauge_silence:seconds",
            "min by ($Q) (streamgauge_query_silence_seconds)",
            "time since a running query's last event or start; absent for continuous ones",
        ),
        Recording(
            "query:streamgauge_uncommitted:seconds",
            "min by ($Q) (streamgauge_query_uncommitted_seconds)",
            "time since a running query last committed, started or had nothing to do",
        ),
        Recording(
            "query:streamgauge_commit_age:seconds",
            "min by ($Q) (streamgauge_query_commit_age_seconds)",
            "time since a running query last committed or started",
        ),
        Recording(
            "query:streamgauge_task_age:seconds",
            "min by ($Q) (streamgauge_inflight_task_age_seconds)",
            "time since a task of the running batch finished: small in a slow batch, large in a hung one",
        ),
        Recording(
            "query:streamgauge_run_age:seconds",
            f"min by ($Q) (-1 * ({_STARTED} - on (job, instance) group_left () max by (job, instance) ({_CLOCK})))\n"
            "or on ($Q) time() - query:streamgauge_started:timestamp_seconds",
            "time since the newest start, by the driver's own clock where it is known",
        ),
        Recording(
            "query:streamgauge_unseen:bool",
            'max by ($Q) (streamgauge_query_state{state="blind"}) == 1\n'
            "or on ($Q)\n"
            "(\n"
            "  query:streamgauge_active:max == 1\n"
            "  and on ($A)\n"
            "  (\n"
            f"    min by ($A) (streamgauge_agent_heartbeat_age_seconds {APP_OF_INSTANCE}) > $heartbeat_seconds\n"
            "    or on ($A) min by ($A) (timestamp(push_time_seconds) - push_time_seconds) > $heartbeat_seconds\n"
            "  )\n"
            ")",
            "1 while a running query can't be seen: blind, a blocked worker, or no push for long; else absent",
        ),
        Recording(
            "query:streamgauge_failure:ended_timestamp_seconds",
            _FAILURE.format("streamgauge_query_failure_info", _ENDED)
            + "\nor on ($Q) "
            + _FAILURE.format(_seen("streamgauge_query_failure_info"), _seen(_ENDED)),
            "when a run failed, with error class, innermost cause and first line of the error",
        ),
        Recording(
            "query:streamgauge_clean_end:timestamp_seconds",
            _CLEAN_END.format(
                ended=_seen(_ENDED),
                stopped=_seen('streamgauge_query_state{state="stopped"}'),
                unknown=_seen('streamgauge_query_reason_info{state="stopped"}'),
            ),
            "when a run was stopped without an error; absent while it runs",
        ),
        Recording(
            "query:streamgauge_starts:count30m",
            _larger_of(
                _count_changes("query:streamgauge_started:timestamp_seconds"),
                "sum by ($Q) (floor(increase(streamgauge_query_starts_total[$restart_window])))",
            ),
            "starts within restart_window, in one driver or several",
        ),
        Recording(
            "query:streamgauge_clean_ends:count30m",
            _larger_of(
                _count_changes("query:streamgauge_clean_end:timestamp_seconds"),
                'sum by ($Q) (floor(increase(streamgauge_query_terminations_total{outcome="stopped"}[$restart_window])))',
            ),
            "stops without an error within restart_window, in one driver or several",
        ),
        Recording(
            "query:streamgauge_backlog:rows",
            "sum by ($Q) (streamgauge_source_backlog_rows)",
            "unprocessed rows, over the sources that report them",
        ),
        *(
            Recording(
                f"query:streamgauge_backlog:{unit}",
                f"sum by ($Q) (streamgauge_source_backlog_{unit} unless on ($Q, instance, source) streamgauge_source_backlog_rows)",
                f"unprocessed {unit}, over the sources that report {unit} and no rows",
            )
            for unit in ("files", "bytes", "versions")
        ),
        Recording(
            "query:streamgauge_input_rows:rate5m",
            "sum by ($Q) (rate(streamgauge_input_rows_total[$watermark_slice]))",
            "rows per second, short window",
        ),
        Recording(
            "query:streamgauge_batch_duration:mean15m",
            "sum by ($Q) (rate(streamgauge_batch_duration_seconds_sum[$rate_window]))\n"
            "/ on ($Q) (sum by ($Q) (rate(streamgauge_batch_duration_seconds_count[$rate_window])) > 0)",
            "mean length of batches with data; absent when there were none",
        ),
        Recording(
            "query:streamgauge_busy:ratio15m",
            "sum by ($Q) (rate(streamgauge_batch_duration_seconds_sum[$rate_window]))",
            "share of its time that the query spends in batches with data",
        ),
    ),
)

_MEAN = "query:streamgauge_batch_duration:mean15m"
_SLICE = "[$baseline_slice:$baseline_step]"


def _week(part: str) -> str:
    """The sum of an hour's part over the week."""
    hours = f"query:streamgauge_batch_duration:{part}1h[$baseline_window]"
    return f"sum_over_time({hours} offset $baseline_offset)"


# Sums, not means: the week's mean weighs each hour by its count, and PromQL can't multiply two ranges.
SLICES = Group(
    "slices",
    interval="baseline_slice",
    recordings=(
        Recording(
            "query:streamgauge_batch_duration:count1h",
            f"count_over_time({_MEAN}{_SLICE})",
            "steps of the last hour in which there were batches; recorded once per hour",
        ),
        Recording(
            "query:streamgauge_batch_duration:sum1h",
            f"sum_over_time({_MEAN}{_SLICE})",
            "sum of the mean batch duration over those steps: mean times count",
        ),
        Recording(
            "query:streamgauge_batch_duration:sumsq1h",
            f"sum_over_time(({_MEAN} ^ 2){_SLICE})",
            "sum of its squares over those steps: mean square times count",
        ),
    ),
)

BASELINES = Group(
    "baselines",
    interval="baseline_interval",
    recordings=(
        Recording(
            "query:streamgauge_batch_duration:count1w",
            # One sample per hour, however often it was recorded.
            "sum_over_time(last_over_time(query:streamgauge_batch_duration:count1h[$baseline_slice])"
            "[$baseline_window:$baseline_slice] offset $baseline_offset)",
            "steps of the last week in which there were batches",
        ),
        Recording(
            "query:streamgauge_batch_duration:avg1w",
            f"{_week('sum')} / on ($Q) {_week('count')}\n"
            "and on ($Q) query:streamgauge_batch_duration:count1w >= $baseline_minimum / $baseline_step",
            "usual duration of a batch; absent until there is a day's worth of batches",
        ),
        Recording(
            "query:streamgauge_batch_duration:stddev1w",
            "sqrt(clamp_min(\n"
            f"  {_week('sumsq')} / on ($Q) {_week('count')}\n"
            "  - on ($Q) query:streamgauge_batch_duration:avg1w ^ 2,\n"
            "  0\n"
            "))",
            "standard deviation of that; absent when it is",
        ),
        Recording(
            "query:streamgauge_input_rows:rate1h",
            "sum by ($Q) (rate(streamgauge_input_rows_total[$cost_window]))",
            "rows per second, long window",
        ),
        Recording(
            "query:streamgauge_row_cost:seconds_per_krow1h",
            "1000 * sum by ($Q) (rate(streamgauge_batch_duration_seconds_sum[$cost_window]))\n"
            "/ on ($Q) (query:streamgauge_input_rows:rate1h > 0)",
            "seconds of batch for a thousand rows: the cost of the code, whatever the load",
        ),
    ),
)
