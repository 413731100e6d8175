"""Freshness as an objective: how fast the budget of stale minutes is burnt, over several windows.

A minute of which nothing is known counts as fresh, so a new query or a gap in Prometheus burns
nothing. A minute in which a running query can't be seen counts as neither: it leaves the window, of which at
least half stays. A failed query is stale; one that has just started has its target's time for a first commit.
Idle is fresh: the agent says 0 then. A job that ends by design is as fresh as its schedule, which nobody here knows.

The two that page need no `for`, since their windows smooth already, and fire only while the query is
stale: an incident whose own page is over must not page again because its windows remember it. Nor while
the query was fresh at its last event, is overdue since, and may still turn out to be stalled: that is one cause,
and QueryStalled's page. Once a stall would have fired, or with the next commit, they fire again.
"""

from __future__ import annotations

from .annotations import ask, ask_recorded
from .rule import ENDS_BY_DESIGN, Alert, Group, Recording

_STALE = "query:streamgauge_stale:bool"
_UNSEEN = "query:streamgauge_unseen:bool"
_UNDECIDED = "query:streamgauge_stall_undecided:bool"
_TARGET = "query:streamgauge_freshness_target:seconds"
_SILENCE = "query:streamgauge_silence:seconds"
_LAG = "max by ($Q) (streamgauge_freshness_lag_seconds)"
# From one event to the next: a trigger interval and a batch.
_USUAL = 'sum by ($Q) ({__name__=~"streamgauge_batch_duration_max_seconds|streamgauge_trigger_interval_seconds"})'
_BUDGET = "(1 - $freshness_objective)"
_WINDOWS = {
    "burn_5m": "burn_step",
    "burn_30m": "burn_step",
    "burn_1h": "burn_step",
    "burn_2h": "burn_step",
    "burn_6h": "burn_coarse_step",
}
_LONG_WINDOWS = {"burn_1d": "burn_coarse_step", "burn_3d": "burn_coarse_step"}


def _ratio(window: str) -> str:
    return f"query:streamgauge_stale:ratio{window.removeprefix('burn_')}"


def _record(window: str, step: str) -> Recording:
    return Recording(
        _ratio(window),
        f"sum_over_time({_STALE}[${window}:${step}])\n"
        "/ on ($Q) clamp_min(\n"
        f"  ${window} / ${step} - (sum_over_time({_UNSEEN}[${window}:${step}]) or on ($Q) 0 * query:streamgauge_alerting:info),\n"
        f"  0.5 * ${window} / ${step}\n"
        ")",
        f"share of the window ({window.removeprefix('burn_')}) in which the query was stale, of the time it was seen",
    )


def _burn(variant: str, long: str, short: str, factor: str, hold: str | None) -> Alert:
    """One pair of windows: a ticket with `hold`, a page without."""
    now = "" if hold else f"\nand on ($Q) {_STALE} == 1\nunless on ($Q) {_UNDECIDED}"
    return Alert(
        "FreshnessBudgetBurn",
        "warning" if hold else "critical",
        f"{_ratio(long)} > ${factor} * {_BUDGET}\n"
        f"and on ($Q) {_ratio(short)} > ${factor} * {_BUDGET}{now}",
        hold,
        "A query uses up its freshness budget too fast.",
        "{{ $labels.query }} of {{ $labels.app }} was stale for {{ $value | humanizePercentage }} of"
        f" the last ${long}; the objective is to be fresh"
        " {{ $freshness_objective | humanizePercentage }} of the time. Now its output is"
        f" {ask('freshness_lag_seconds', 'humanizeDuration')} old; allowed are"
        f" {ask_recorded(_TARGET, 'humanizeDuration')}.",
        "Whoever reads the output gets data older than was promised.",
        "See what the query's verdict was over the window: stalls, failures or slow batches.",
        "streamgauge-slo",
        variant=variant,
    )


SLO = Group(
    "slo",
    recordings=(
        Recording(
            _TARGET,
            'max by ($Q) (streamgauge_alert_threshold{name="freshness_seconds"})\n'
            "or on ($Q) clamp_min(query:streamgauge_silence_budget:seconds, $freshness_seconds)",
            "how old the output of a query may be",
        ),
        Recording(
            _STALE,
            f"({_LAG} > bool on ($Q) {_TARGET})\n"
            f"* on ($Q) (query:streamgauge_run_age:seconds > bool on ($Q) {_TARGET})\n"
            "and on ($Q) query:streamgauge_active:max == 1\n"
            f"unless on ($Q) {ENDS_BY_DESIGN}\n"
            f"unless on ($Q) {_UNSEEN}\n"
            'or on ($Q) max by ($Q) (streamgauge_query_state{state="failed"}) == 1',
            "1 while the query is stale or failed, 0 while it is fresh or idle; absent while it can't be seen",
        ),
        Recording(
            _UNDECIDED,
            f"{_SILENCE} <= bool on ($Q) (query:streamgauge_silence_budget:seconds + $stall_for + $cause_keep) == 1\n"
            f"unless on ($Q) {_SILENCE} <= on ($Q) {_USUAL}\n"
            f"and on ($Q) {_LAG} - on ($Q) {_SILENCE} <= on ($Q) {_TARGET}",
            "1 while a query that was fresh at its last event is overdue, and not yet long enough to be stalled; else absent",
        ),
        *(_record(window, step) for window, step in _WINDOWS.items()),
    ),
    alerts=(
        _burn("1h", "burn_1h", "burn_5m", "burn_fast", None),
        _burn("6h", "burn_6h", "burn_30m", "burn_slow", None),
    ),
)

# Days change slowly and take long to read.
SLO_DAYS = Group(
    "slo",
    part="days",
    interval="burn_interval",
    recordings=tuple(_record(window, step) for window, step in _LONG_WINDOWS.items()),
    alerts=(
        _burn("1d", "burn_1d", "burn_2h", "burn_day", "burn_day_for"),
        _burn("3d", "burn_3d", "burn_6h", "burn_three_days", "burn_three_days_for"),
    ),
)
