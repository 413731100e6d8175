"""Series that are computed once: who is alerted for, how old things are, what is usual."""

from __future__ import annotations

from .rule import Group, Recording

_STARTED = "streamgauge_query_started_timestamp_seconds"
_OWNER = "max by ($Q, team, env, tier, trigger) (\n  {} * on ($Q, instance) group_left () {}\n)"

# An age is as old as the last scrape: what Prometheus has not looked at since it was away, or since it
# started, is nobody's silence.
_SCRAPED = "max by ($Q) (timestamp(streamgauge_query_active))"


def _seen(series: str) -> str:
    """What was scraped within the last evaluations: a driver that died between two of them counts."""
    return f"last_over_time({series}[$seen_window])"


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
            "who owns the query and how it is triggered, as of its newest start",
        ),
        Recording(
            "query:streamgauge_alerting:info",
            "(\n"
            "  topk by ($Q) (1, last_over_time(query:streamgauge_owner:started_timestamp_seconds[$memory_window])) >= bool 0\n"
            "  or on ($Q) last_over_time(query:streamgauge_active:max[$memory_window]) >= bool 0\n"
            "  or on ($Q) max by ($Q) (streamgauge_query_expected) >= bool 0\n"
            ")\n"
            "unless on ($Q) last_over_time(query:streamgauge_alerting_enabled:min[$memory_window]) == 0",
            "one for each query that is alerted for, with its owner; every alert is joined with it",
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
            f'{_SCRAPED} - on ($Q) max by ($Q) ({{__name__=~"streamgauge_last_event_timestamp_seconds|streamgauge_query_started_timestamp_seconds"}})\n'
            "and on ($Q) query:streamgauge_active:max == 1\n"
            'unless on ($Q) query:streamgauge_alerting:info{trigger="continuous"}',
            "how long a running query has been silent; continuous ones never speak",
        ),
        Recording(
            "query:streamgauge_uncommitted:seconds",
            f'{_SCRAPED} - on ($Q) max by ($Q) ({{__name__=~"streamgauge_last_commit_timestamp_seconds|streamgauge_last_idle_timestamp_seconds|streamgauge_query_started_timestamp_seconds"}})\n'
            "and on ($Q) query:streamgauge_active:max == 1\n"
            'unless on ($Q) query:streamgauge_alerting:info{trigger="continuous"}',
            "how long since a running query last committed, started or had nothing to do",
        ),
        Recording(
            "query:streamgauge_commit_age:seconds",
            f'{_SCRAPED} - on ($Q) max by ($Q) ({{__name__=~"streamgauge_last_commit_timestamp_seconds|streamgauge_query_started_timestamp_seconds"}})\n'
            "and on ($Q) query:streamgauge_active:max == 1",
            "how long since a running query last committed or started",
        ),
        Recording(
            "query:streamgauge_task_age:seconds",
            f"{_SCRAPED} - on ($Q) max by ($Q) (streamgauge_inflight_last_task_timestamp_seconds)",
            "how long since a task of the running batch finished: small in a slow batch, large in a hung one",
        ),
        Recording(
            "query:streamgauge_backlog:rows",
            "sum by ($Q) (streamgauge_source_backlog_rows)",
            "rows that wait, over the sources that tell",
        ),
        Recording(
            "query:streamgauge_input_rows:rate5m",
            "sum by ($Q) (rate(streamgauge_input_rows_total[$watermark_slice]))",
            "rows a second, short window",
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
            "rows a second, long window",
        ),
        Recording(
            "query:streamgauge_row_cost:seconds_per_krow1h",
            "1000 * sum by ($Q) (rate(streamgauge_batch_duration_seconds_sum[$cost_window]))\n"
            "/ on ($Q) (query:streamgauge_input_rows:rate1h > 0)",
            "seconds of batch for a thousand rows: the cost of the code, whatever the load",
        ),
    ),
)
