"""Agent: can what the other boards show be trusted."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, YELLOW
from .promql import agent, of_app, of_seen, parameter, window

_NO_AGENT = "No agent is scraped: is the job in Prometheus' targets?"
_WHERE = "{{app}} {{instance}}"
_UP = 'max by (job, instance) (up{job=~"$job"})'
_FILLED = f"{agent('agent_series')} / on (job, instance) {agent('agent_series_limit')}"
_DROPPED = window("dropped_window")


def _rate(name: str, by: str = "") -> str:
    """All agents of the application together."""
    labels = f"job, instance{', ' + by if by else ''}"
    each = of_app(f"sum by ({labels}) (rate({agent(name)}[$__rate_interval]))")
    return f"sum by ({by}) (\n{each}\n)"


def _level(name: str) -> str:
    return of_app(f"max by (job, instance) ({agent(name)})")


def _quantile(share: float, name: str) -> str:
    return f"histogram_quantile({share:g}, {_rate(name + '_bucket', 'le')}) >= 0"


def _stat(title: str, unit: str, bad: str, target: Target, **more: object) -> Panel:
    settings: dict[str, object] = {"width": 3} | more
    return Panel(title, "stat", unit, bad, _NO_AGENT, (target,), height=4, **settings)  # type: ignore[arg-type]


def _chart(title: str, unit: str, bad: str, *targets: Target, **more: object) -> Panel:
    settings: dict[str, object] = {"empty": _NO_AGENT, "width": 8} | more
    return Panel(title, "timeseries", unit, bad, targets=targets, **settings)  # type: ignore[arg-type]


def _count(name: str, span: str) -> str:
    """All agents of the application together, those that died within the span too."""
    each = of_seen(f"sum by (job, instance) (round(increase({agent(name)}[{span}])))")
    return f"sum(\n{each}\n)"


def _heartbeat_age() -> str:
    """By the agent's own clock; agents before 0.2 tell only when it was, by the driver's."""
    when = f"time() - {_level('agent_heartbeat_timestamp_seconds')}"
    return f"max(\n{_level('agent_heartbeat_age_seconds')}\nor {when}\n)"


def _clock_difference() -> str:
    """Between a driver and Prometheus; what a Pushgateway keeps is an old clock."""
    clock = agent("agent_clock_timestamp_seconds")
    pushed = 'push_time_seconds{job=~"$job"}'
    each = f"max by (job, instance) (abs({clock} - timestamp({clock}) unless on (job, instance) {pushed}))"
    return f"max(\n{of_app(each)}\n)"


def _lost(name: str) -> str:
    return _count(name, _DROPPED)


AGENT_BOARD = Board(
    "agent",
    "Agent",
    "The agents themselves: events, drops, time on Spark's bus, series, scrapes.",
    (
        Row(
            "Now",
            (
                _stat(
                    "Agents that answer",
                    "percentunit",
                    f"Share of the agents seen in {window('memory_window')} that answer, as long as Prometheus has"
                    " them as targets. Bad is below 100 %.",
                    Target(
                        f"avg(\n{of_seen(_UP)}\n)",
                        "up",
                        instant=True,
                    ),
                    alerts=("AgentDown",),
                    width=4,
                    steps=((None, RED), (1, GREEN)),
                    decimals=0,
                ),
                _stat(
                    "Oldest heartbeat",
                    "s",
                    "Age of a worker's last sign of life. Bad is minutes: its worker is blocked.",
                    Target(_heartbeat_age(), "age", instant=True),
                    alerts=("AgentBlind",),
                    width=4,
                    steps=((None, GREEN), (parameter("heartbeat_seconds"), RED)),
                ),
                _stat(
                    "Clock difference",
                    "s",
                    "Between Prometheus and the driver whose clock differs most. Bad is a minute and more:"
                    " times on these boards are wrong by as much.",
                    Target(_clock_difference(), "difference", instant=True),
                    alerts=("ClockSkew",),
                    condition="the agents report their clock",
                    width=4,
                    steps=((None, GREEN), (parameter("skew_seconds"), RED)),
                ),
                _stat(
                    f"Lost events {_DROPPED}",
                    "short",
                    "Dropped by the inbox or by Spark's bus, or never seen. Bad is any.",
                    Target(
                        f"{_lost('agent_events_dropped_total')} + {_lost('agent_missed_batches_total')}"
                        f" + {_lost('agent_bus_dropped_events_total')}",
                        "lost",
                        instant=True,
                    ),
                    alerts=("AgentEventsDropped",),
                    steps=((None, GREEN), (0.5, RED)),
                    decimals=0,
                ),
                _stat(
                    "Errors in 1h",
                    "short",
                    "Failures of the agent's parts, which no query notices. Bad is a number that grows.",
                    Target(_count("agent_errors_total", "1h"), "errors", True),
                    alerts=("AgentBlind",),
                    steps=((None, GREEN), (0.5, ORANGE)),
                    decimals=0,
                ),
                _stat(
                    "Series used",
                    "percentunit",
                    "Share of the series limit, of the fullest agent. Bad is near 100 %: further label sets are dropped.",
                    Target(
                        f"max(\n{of_app(_FILLED)}\n)",
                        "used",
                        instant=True,
                    ),
                    steps=((None, GREEN), (0.8, ORANGE), (1, RED)),
                    decimals=1,
                ),
                _stat(
                    "Fallback in 1h",
                    "short",
                    "Events that came by a callback into Python or through PySpark's public objects. Bad is any: an unknown Spark.",
                    Target(_count("agent_fallback_events_total", "1h"), "fallback", True),
                    steps=((None, GREEN), (0.5, ORANGE)),
                    decimals=0,
                ),
            ),
        ),
        Row(
            "Events",
            (
                _chart(
                    "Events by kind",
                    "short",
                    "Bad is no progress while queries run.",
                    Target(_rate("agent_events_total", "kind"), "{{kind}}"),
                    alerts=("AgentBlind",),
                    axis="events/s",
                    overrides=(
                        Override("^progress$", (("color", GREEN),)),
                        Override("^idle$", (("color", BLUE),)),
                        Override("^started$", (("color", YELLOW),)),
                        Override("^terminated$", (("color", PURPLE),)),
                        Override("^duplicate$", (("color", GREY),)),
                    ),
                ),
                _chart(
                    "Events lost",
                    "short",
                    "Bad is anything above 0: figures of those batches are missing.",
                    Target(_rate("agent_events_dropped_total"), "dropped by the inbox"),
                    Target(_rate("agent_missed_batches_total"), "never seen"),
                    Target(_rate("agent_bus_dropped_events_total"), "dropped by Spark's bus"),
                    alerts=("AgentEventsDropped",),
                    axis="events/s",
                    overrides=(
                        Override("^dropped by the inbox$", (("color", RED),)),
                        Override("^never seen$", (("color", ORANGE),)),
                        Override("^dropped by Spark's bus$", (("color", GREY),)),
                    ),
                ),
                _chart(
                    "Inbox",
                    "short",
                    "Unprocessed events. Bad is a queue that does not empty.",
                    Target(_level("agent_inbox_events"), _WHERE),
                    alerts=("AgentBlind", "AgentEventsDropped"),
                    axis="events",
                ),
                _chart(
                    "Events that called Python on Spark's listener bus",
                    "short",
                    "Usually 0: events come from a queue in the JVM. Bad is anything above 0: each such event holds Spark's listener"
                    " thread for as long as agent_callback_seconds says.",
                    Target(_rate("agent_fallback_events_total"), "fallback"),
                    alerts=("AgentEventsDropped",),
                    axis="events/s",
                    overrides=(Override("^fallback$", (("color", ORANGE),)),),
                ),
                _chart(
                    "Time in the worker per event",
                    "s",
                    "Bad is a p99 near the time between events.",
                    Target(_quantile(0.5, "agent_handling_seconds"), "median"),
                    Target(_quantile(0.99, "agent_handling_seconds"), "p99"),
                    alerts=("AgentBlind",),
                    overrides=(
                        Override("^median$", (("color", GREEN),)),
                        Override("^p99$", (("color", BLUE),)),
                    ),
                ),
                _chart(
                    "Failures by part",
                    "short",
                    "Bad is a part that keeps failing; the log names the reason.",
                    Target(f"{_rate('agent_errors_total', 'part')} > 0", "{{part}}"),
                    empty="No part of the agent failed in this time range.",
                    condition="a part of the agent failed",
                    axis="failures/s",
                ),
            ),
        ),
        Row(
            "Series, scrapes and spans",
            (
                _chart(
                    "Series",
                    "short",
                    "Bad is steady growth: queries with new names all the time.",
                    Target(_level("agent_series"), _WHERE),
                    axis="series",
                ),
                _chart(
                    "Scrape time",
                    "s",
                    "Bad is near the scrape's timeout.",
                    Target(
                        of_app('max by (job, instance) (scrape_duration_seconds{job=~"$job"})'),
                        _WHERE,
                    ),
                    alerts=("AgentDown",),
                ),
                _chart(
                    "Spans by outcome",
                    "short",
                    "Bad is failed or dropped: the trace store is away.",
                    Target(_rate("agent_spans_total", "outcome"), "{{outcome}}"),
                    axis="spans/s",
                    overrides=(
                        Override("^exported$", (("color", GREEN),)),
                        Override("^failed$", (("color", RED),)),
                        Override("^dropped$", (("color", ORANGE),)),
                        Override("^unsampled$", (("color", GREY),)),
                        Override("^handed_over$", (("color", BLUE),)),
                    ),
                ),
                Panel(
                    "Agents and what they watch",
                    "table",
                    "short",
                    "Bad is two versions where there should be one, or a query that is not here.",
                    _NO_AGENT,
                    (
                        Target(
                            'count by (job, instance, app) (streamgauge_query_info{job=~"$job", app=~"$app", query=~"$query"})\n'
                            "* on (job, instance) group_left (version, spark_version)"
                            f" max by (job, instance, version, spark_version) ({agent('build_info')})",
                            instant=True,
                        ),
                    ),
                    alerts=("AgentDown",),
                    width=24,
                    height=6,
                    columns=("Job", "Instance", "Application", "Agent", "Spark", "Queries"),
                ),
            ),
        ),
    ),
    since="now-1h",
)
