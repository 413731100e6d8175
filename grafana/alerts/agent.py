"""Alerts on whether the rest can be believed."""

from __future__ import annotations

from .annotations import TIME, ask, count_queries
from .rule import ENDS_BY_DESIGN, Alert, Group

# The agent's own series carry no application; the address they are scraped from tells.
_APP = "* on (job, instance) group_left (app) max by (job, instance, app) (streamgauge_build_info)"
_HEARTBEAT = "streamgauge_agent_heartbeat_timestamp_seconds"
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
            "See whether the driver is alive and its metrics address is reachable.",
            "streamgauge-agent",
            level="app",
        ),
        Alert(
            "AgentBlind",
            "critical",
            'max by ($Q) (streamgauge_query_state{state="blind"}) == 1\n'
            "or on ($Q)\n"
            "(\n"
            "  query:streamgauge_active:max == 1\n"
            f"  and on ($A) min by ($A) ((timestamp({_HEARTBEAT}) - {_HEARTBEAT}) {_APP}) > $heartbeat_seconds\n"
            ")",
            "blind_for",
            "The agent can't see a query that is running.",
            "The agent of {{ $labels.app }} gets no events of {{ $labels.query }}, or its worker is"
            " blocked: what the dashboards show of this query is as old as its last event, of"
            f" {ask('last_event_timestamp_seconds', TIME)}.",
            "A stall or a failure of this query may go unnoticed.",
            "See the agent's dashboard for the part that is blocked or removed; restart the driver"
            " when it suits, after `streamgauge checkpoint restart`.",
            "streamgauge-agent",
        ),
        Alert(
            "AgentEventsDropped",
            "warning",
            "\nor on ($A) ".join(
                f"sum by ($A) (increase(streamgauge_agent_{what}_total[$dropped_window]) {_APP}) > 0"
                for what in ("events_dropped", "missed_batches", "bus_dropped_events")
            ),
            None,
            "Events were lost before they were counted.",
            "The agent of {{ $labels.app }} lost {{ $value | humanize }} events within"
            " $dropped_window (inbox, batch ids that were never seen, or Spark's own queue).",
            "Counters are too low for that time; gauges are right again with the next event.",
            "Look for a slow listener beside this one, and at the size of Spark's listener queue.",
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
