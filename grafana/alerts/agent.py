"""Alerts on whether the rest can be believed."""

from __future__ import annotations

from .annotations import TIME, WHOLE, ask, ask_reason, checkpoint_command, count_queries
from .rule import APP_OF_INSTANCE, ENDS_BY_DESIGN, Alert, Group

_CLOCK = "streamgauge_agent_clock_timestamp_seconds"
# A Pushgateway shows an old clock, and that is not the driver's.
_SKEW = f"(({_CLOCK} - timestamp({_CLOCK})) unless on (job, instance) push_time_seconds) {APP_OF_INSTANCE}"
_SEEN = "max by ($A, instance) (last_over_time(streamgauge_build_info[$memory_window]))"
# A driver whose queries ended well may go; one that was to run on may not.
_RAN = (
    "max by (job, instance) (\n"
    "    last_over_time(streamgauge_query_active[$memory_window]) == 1\n"
    f"    unless on ($Q) {ENDS_BY_DESIGN}\n"
    "  )"
)

AGENT = Group(
    "agent",
    alerts=(
        Alert(
            "AgentDown",
            "critical",
            "max by ($A) (\n"
            f"  {_SEEN} * on (job, instance) group_left () (max by (job, instance) (up) == bool 0)\n"
            f"  and on (job, instance) {_RAN}\n"
            ") == 1\n"
            "unless on ($A) max by ($A) (streamgauge_build_info)",
            "agent_down_for",
            "The agent of an application can't be scraped.",
            "Prometheus has not been able to scrape the agent of {{ $labels.app }}"
            " ({{ $labels.job }}) for $agent_down_for; it had"
            f" {count_queries()} queries in the last $memory_window.",
            "None of the application's queries is watched.",
            "Check whether the driver is alive and its metrics address is reachable.",
            "streamgauge-agent",
            level="app",
        ),
        Alert(
            "AgentBlind",
            "critical",
            "query:streamgauge_unseen:bool",
            "blind_for",
            "The agent can't see a query that should be running.",
            "The agent of {{ $labels.app }} can't see {{ $labels.query }}."
            f" What it can't reach: {ask_reason()}. What the dashboards show of this query is as old as its last"
            f" event, of {ask('last_event_timestamp_seconds', TIME)}.",
            "A stall or a failure of this query may go unnoticed; it may be down already.",
            "Read the reason. If the driver or its JVM does not answer, check its process (alive, frozen, out of"
            " memory) where it runs, and replace it if it stays so. If only the listener or the worker is affected, the"
            f" query runs: restart when it suits. Before either run {checkpoint_command()}.",
            "streamgauge-agent",
            keep="cause_keep",
        ),
        Alert(
            "AgentEventsDropped",
            "warning",
            "\nor on ($A) ".join(
                f"round(sum by ($A) (increase(streamgauge_agent_{what}_total[$dropped_window]) {APP_OF_INSTANCE})) > 0"
                for what in ("events_dropped", "missed_batches", "bus_dropped_events")
            ),
            None,
            "Events were lost before they were counted.",
            f"The agent of {{{{ $labels.app }}}} lost {{{{ $value | {WHOLE} }}}} events within"
            " $dropped_window (inbox, batch ids that were never seen, or Spark's own queue).",
            "Counters are too low for that time; gauges are right again with the next event.",
            "Look for a slow listener beside this one, and at the size of Spark's listener queue.",
            "streamgauge-agent",
            level="app",
        ),
        Alert(
            "ClockSkew",
            "warning",
            f"max by ($A) ({_SKEW}) > $skew_seconds\n"
            f"or on ($A) min by ($A) ({_SKEW}) < -$skew_seconds",
            "skew_for",
            "The clocks of a driver and of Prometheus differ.",
            "The clock of a driver of {{ $labels.app }} differs from Prometheus' clock by"
            " {{ $value | humanizeDuration }} (above 0: the driver is ahead).",
            "Timestamps of this application are wrong by as much on dashboards and pages; ages and alerts on"
            " silence are not affected.",
            "Check time synchronisation (chrony, NTP) on the driver's host and on that of Prometheus.",
            "streamgauge-agent",
            level="app",
        ),
        Alert(
            "Watchdog",
            "none",
            "vector(1)",
            None,
            "The alerting pipeline works.",
            "This alert always fires. When it stops, Prometheus or Alertmanager is down.",
            "None; its absence means that nothing pages any more.",
            "Nothing, while it fires.",
            "streamgauge-agent",
            level="bare",
        ),
    ),
)
