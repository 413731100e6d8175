"""Series and expressions that several boards share. A name that no table knows raises."""

from __future__ import annotations

from streamgauge.exporters.metrics.table import METRICS, PREFIX
from streamgauge.grafana.alerts.catalogue import recordings
from streamgauge.grafana.alerts.settings import Settings

from . import verdicts
from .verdicts import VERDICTS

QUERY = "job, app, query"
CHOSEN = 'job=~"$job", app=~"$app", query=~"$query"'
ALERT_LABELS = f"alertname, severity, {QUERY}"
FAILED = 'outcome="failed"'
OF_APP = 'job=~"$job", app=~"$app"'  # every query of the application, whichever was chosen
_RECORDED = frozenset(rule.record for rule in recordings())
_SETTINGS = Settings()


def series(name: str, more: str = "", chosen: str = CHOSEN) -> str:
    """A series of the agent, for the queries that were chosen."""
    family = name
    for suffix in ("_bucket", "_sum", "_count"):
        if name not in METRICS:
            family = name.removesuffix(suffix) if name.endswith(suffix) else family
    kind = METRICS[family].kind
    if (kind == "histogram") == (family == name):
        raise KeyError(f"{name} is no series of the {kind} {family}")
    return f"{PREFIX}{name}{{{chosen}{', ' + more if more else ''}}}"


def recorded(name: str, more: str = "", chosen: str = CHOSEN) -> str:
    """A series that the rules record, for the queries that were chosen."""
    if name not in _RECORDED:
        raise KeyError(f"no rule records {name}")
    return f"{name}{{{chosen}{', ' + more if more else ''}}}"


def agent(name: str) -> str:
    """A series of the agent itself, which knows no query."""
    return series(name, chosen='job=~"$job"')


def of_app(expr: str) -> str:
    """A vector by job and instance, with the application that the instance serves."""
    info = series("build_info", chosen=OF_APP)
    return f"({expr})\n* on (job, instance) group_left (app) max by (job, instance, app) ({info})"


def of_seen(expr: str) -> str:
    """A vector by job and instance, of those that served the application lately: a dead one too."""
    info = series("build_info", chosen=OF_APP)
    seen = f"last_over_time({info}[{window('memory_window')}])"
    return f"({expr})\n* on (job, instance) max by (job, instance) ({seen})"


def best(operation: str, name: str, more: str = "", by: str = "") -> str:
    """A gauge by query, whichever instance serves it."""
    return f"{operation} by ({QUERY}{', ' + by if by else ''}) ({series(name, more)})"


def rate(name: str, more: str = "", by: str = "") -> str:
    """A counter's rate by query."""
    labels = f"{QUERY}{', ' + by if by else ''}"
    return f"sum by ({labels}) (rate({series(name, more)}[$__rate_interval]))"


def increase(name: str, window: str = "$__rate_interval", more: str = "", by: str = "") -> str:
    """How often something happened by query: whole numbers, which `increase` alone does not give."""
    labels = f"{QUERY}{', ' + by if by else ''}"
    return f"sum by ({labels}) (round(increase({series(name, more)}[{window}])))"


def largest(expr: str) -> str:
    """A series by query and nothing else: without its name, so that a table's rows merge."""
    return f"max by ({QUERY}) ({expr})"


def failures(window: str, by: str) -> str:
    """Ends by exception. A class that is new has no earlier value to rise from: all of it counts.

    New is what was absent for a whole window: one failed scrape makes nothing new.
    """
    ends = series("query_terminations_total", FAILED)
    return (
        f"sum by ({by}) (\n  {ends} unless last_over_time({ends}[{window}] offset {window})\n"
        f"  or round(increase({ends}[{window}]))\n)"
    )


def moments(counter: str, by: str) -> str:
    """By how much a counter rose since the step before: at one step only, so that its mark is a point.

    Grafana joins marks of neighbouring steps into a region.
    """
    before = f"last_over_time({counter}[$__rate_interval] offset $__interval)"
    return (
        f"sum by ({by}) (\n  {counter} - {before} > 0\n  or {counter} < {before}\n"
        f"  or {counter} unless {before}\n) > 0"
    )


def firing(severity: str) -> str:
    """The alerts of one severity that fire for what was chosen, each once whatever its variants."""
    fires = f'ALERTS{{severity="{severity}", {_FIRING}, {_CONCERNED}}}'
    return f"max by ({ALERT_LABELS}) ({fires})"


def parameter(name: str) -> float:
    """The value that the alert rules ship with."""
    value = _SETTINGS.value(name)
    if isinstance(value, str):
        raise TypeError(f"{name} is no number")
    return value


def window(name: str) -> str:
    """A parameter as a range: `15m`."""
    return _SETTINGS.duration(name)


_VERDICT_TERMS = "\n  or ".join(
    f"{number} * " + series("query_state", f'state="{state}"')
    for state, (number, _) in VERDICTS.items()
    if state != verdicts.VANISHED
)
VERDICT = f"max by ({QUERY}) (\n  {_VERDICT_TERMS}\n)"

# Gone without a word, and not because a run of `available_now` or `once` was over. Prometheus alone
# can tell; the window is the alert's.
_ACTIVE = recorded("query:streamgauge_active:max")
_ENDS_BY_DESIGN = recorded("query:streamgauge_alerting:info", 'trigger=~"available_now|once"')
VANISHED = (
    f"(last_over_time({_ACTIVE}[{window('memory_window')}]) == 1)\n"
    f"unless on ({QUERY}) {_ACTIVE}\n"
    f"unless on ({QUERY}) {_ENDS_BY_DESIGN}"
)

# What the agent says, and of a query that it can't speak of any more, what Prometheus says.
VERDICT_NOW = f"{VERDICT}\nor on ({QUERY}) {VERDICTS[verdicts.VANISHED][0]} * (\n{VANISHED}\n)"

_OURS = 'alertname=~"SparkStream.+", alertname!="SparkStreamWatchdog"'
_CONCERNED_APP = 'job=~"$job", app=~"$app|"'
_CONCERNED = f'{_CONCERNED_APP}, query=~"$query|"'  # some are of an application, not a query
_FIRING = f'{_OURS}, alertstate="firing"'
ALERTS = f"ALERTS{{{_FIRING}, {_CONCERNED}}}"
ALERTS_OF_APP = f"ALERTS{{{_FIRING}, {_CONCERNED_APP}}}"
CRITICAL, WARNING = (
    f'ALERTS{{{_FIRING}, severity="{severity}", {CHOSEN}}}' for severity in ("critical", "warning")
)
ALERTS_SINCE = f"ALERTS_FOR_STATE{{{_OURS}, {_CONCERNED}}}"

ON = f"on ({QUERY})"
P95 = (
    f"histogram_quantile(0.95, sum by ({QUERY}, le)"
    f" (rate({series('batch_duration_seconds_bucket')}[$__rate_interval]))) >= 0"
)
# Batches of the last quarter of an hour against those of the week before.
CHANGE = (
    f"{recorded('query:streamgauge_batch_duration:mean15m')}"
    f" / {ON} {recorded('query:streamgauge_batch_duration:avg1w')} - 1"
)
# 1 and more is stale: the target is the query's own, as the objective has it.
FRESHNESS = (
    f"{best('max', 'freshness_lag_seconds')}"
    f" / {ON} {recorded('query:streamgauge_freshness_target:seconds')}"
)
WATERMARK_LAG = f"time() - {best('max', 'watermark_timestamp_seconds')}"
