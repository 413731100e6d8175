"""What a page says: numbers of the query itself, and links that open on it.

All of it is Go template text for Prometheus 2.42: `urlquery` is Go's own and always there,
`urlQueryEscape` came with 3.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from .rule import Alert

_VARIABLES = {"query": ("job", "app", "query"), "app": ("job", "app"), "bare": ()}


# How a number is written: `humanize` would make 12.35k of batch 12345.
WHOLE = 'printf "%.0f"'
TIME = "humanizeTimestamp"

_APP = ("job", "app")
_QUERY = (*_APP, "query")
# What tells one alert of a rule from another; an absent label equals the empty one.
_ONE_ALERT = (*_QUERY, "source", "operator")


_FAILURE = "query:streamgauge_failure:ended_timestamp_seconds"


def ask(series: str, form: str = "humanize", over: str = "") -> str:
    """A number of this query, looked up when the alert fires; `unknown` where it is absent.

    With `over`, a window such as `$memory_window`, the last one there was: for what is gone.
    """
    found = f"streamgauge_{series}{_matcher(_QUERY)}"
    expr = f"max(last_over_time({found}[{over}]))" if over else f"max({found})"
    return _look_up(expr, _first(f"value | {form}"))


def ask_recorded(series: str, form: str = "humanize") -> str:
    """The same of a recorded series, by its whole name."""
    return _look_up(f"max({series}{_matcher(_QUERY)})", _first(f"value | {form}"))


def ask_backlog() -> str:
    """What is unprocessed, in rows where they are known, else in what the sources report."""
    words = "unknown"
    for unit, form in (
        ("versions", "humanize"),
        ("bytes", "humanize1024"),
        ("files", "humanize"),
        ("rows", "humanize"),
    ):
        shown = _first(f"value | {form}") + ("B" if unit == "bytes" else f" {unit}")
        found = f"query:streamgauge_backlog:{unit}{_matcher(_QUERY)}"
        words = _look_up(f"max({found})", shown, otherwise=words)
    return words


def ask_reason(otherwise: str = "") -> str:
    """The verdict's reason; without one the verdict; else `otherwise`, or that nobody serves the query."""
    state = _look_up(
        f"streamgauge_query_state{_matcher(_QUERY)} == 1",
        "the agent's verdict is " + _first('label "state"'),
        otherwise="unknown: nobody serves this query's series",
    )
    return _look_up(
        f"streamgauge_query_reason_info{_matcher(_QUERY)}",
        _first('label "reason"'),
        otherwise=otherwise or state,
    )


def ask_failure(over: str, otherwise: str) -> str:
    """Error class, innermost cause and first line of the newest failure within `over`."""
    return _look_up(
        f"topk(1, last_over_time({_FAILURE}{_matcher(_QUERY)}[{over}]))",
        '{{ $failure := first . }}{{ or ($failure | label "error_class") "unknown error" }}'
        '{{ with $failure | label "cause_class" }}, caused by {{ . }}{{ end }}'
        '{{ with $failure | label "message" }}: {{ . }}{{ end }}',
        otherwise=otherwise,
    )


def ask_checkpoint(otherwise: str = "unknown") -> str:
    """Where the checkpoint of the newest run is, also of a driver that is gone."""
    return _look_up(
        f"query:streamgauge_alerting:info{_matcher(_QUERY)}",
        '{{ with . | first | label "checkpoint" }}{{ . }}{{ else }}' + otherwise + "{{ end }}",
        otherwise=otherwise,
    )


def checkpoint_command() -> str:
    """What to paste before a restart: the command with this query's checkpoint, quoted for a shell."""
    quoted = """{{ . | reReplaceAll "'" "'\\\\''" }}"""
    place = ask_checkpoint("CHECKPOINT").replace("{{ . }}", quoted)
    return f"`streamgauge checkpoint restart '{place}'`"


def ask_still_sources() -> str:
    """The sources that gave no row within `$watermark_window`; `unknown` where all gave some."""
    found = f"streamgauge_source_input_rows_total{_matcher(_QUERY)}"
    return _look_up(
        f"sum by (source) (increase({found}[$watermark_window])) == 0",
        "{{ range $number, $source := . }}{{ if $number }}, {{ end }}"
        '{{ $source | label "source" }}{{ end }}',
    )


def count_queries() -> str:
    """How many queries the application had within `$memory_window`."""
    found = f"query:streamgauge_active:max{_matcher(_APP)}"
    expr = f"count(last_over_time({found}[$memory_window]))"
    return _look_up(expr, _first(f"value | {WHOLE}"), _APP)


def ask_label(series: str, label: str, over: str = "") -> str:
    """A label of a series of this query that is not 0, such as the path on its info."""
    found = f"streamgauge_{series}{_matcher(_QUERY)}"
    found = f"last_over_time({found}[{over}])" if over else found
    return _look_up(f"{found} > 0", _first(f'label "{label}"'))


def since(alert: Alert) -> str:
    """When it began: by the alert's own series, else when the rule first found it.

    Prometheus writes the series that tells it at the end of an evaluation: in its first, a rule that
    has no `for` finds none, and it began now.
    """
    named = {"alertname": alert.full_name, "variant": alert.variant}
    fixed = "".join(f'{name}="{value}",' for name, value in named.items())
    began = f"(min(ALERTS_FOR_STATE{_matcher(_ONE_ALERT, fixed)}) or vector(time()))"
    labels: tuple[str, ...] = _ONE_ALERT
    if alert.looks_back:
        began += f" - ${alert.looks_back}"
    if alert.since:
        own = f"streamgauge_{alert.since}{_matcher(_QUERY)}"
        if alert.remembered:
            own = f"last_over_time({own}[$memory_window])"
        began = f"max({own}) or {began}"
        labels = (*_QUERY, *_ONE_ALERT)
    return _look_up(began, _first(f"value | {TIME}"), labels)


def _matcher(labels: tuple[str, ...], fixed: str = "") -> str:
    return "{" + fixed + ",".join(f"{label}=%q" for label in labels) + "}"


def _first(shown: str) -> str:
    """What of the first sample is written: `value | humanize`, or `label "path"`."""
    return f"{{{{ . | first | {shown} }}}}"


def _look_up(
    expr: str, shown: str, labels: tuple[str, ...] = _QUERY, otherwise: str = "unknown"
) -> str:
    """A template that asks Prometheus, with the alert's labels in the places of `%q`.

    `shown` is written of what was found, `otherwise` when nothing was.
    """
    text = expr.replace('"', '\\"')
    words = " ".join(f"$labels.{label}" for label in labels)
    return (
        f'{{{{ with printf "{text}" {words} | query }}}}'
        f"{shown}{{{{ else }}}}{otherwise}{{{{ end }}}}"
    )


def label_in_url(label: str) -> str:
    """A label's value, escaped for the query part of a URL."""
    return f"{{{{ $labels.{label} | urlquery }}}}"


def dashboard_url(alert: Alert) -> str:
    """The alert's dashboard with this query selected."""
    chosen = "&".join(f"var-{name}={label_in_url(name)}" for name in _VARIABLES[alert.level])
    return f"$grafana_url/d/{alert.dashboard}" + (f"?{chosen}" if chosen else "")


def trace_url(alert: Alert) -> str:
    """Grafana's trace search, on the batches and starts of this query (or the application's).

    By the label, which every one of them carries: a span's name is not always the query's.
    """
    search = 'resource.service.name="APP"'
    if alert.level == "query":
        search += ' && span.spark.streaming.query.label="QUERY"'
    left = (
        '{"datasource":"UID","queries":[{"refId":"A","queryType":"traceql","query":"{'
        + search.replace('"', '\\"')
        + '}"}],"range":{"from":"now-1h","to":"now"}}'
    )
    text = quote(left, safe="")
    for mark, value in (("APP", "app"), ("QUERY", "query")):
        text = text.replace(mark, label_in_url(value))
    return "$grafana_url/explore?left=" + text.replace("UID", "$tempo_uid")


def annotate(alert: Alert) -> dict[str, str]:
    """All annotations of an alert, with rule parameters still as `$name`."""
    found = {
        "summary": alert.summary,
        "description": alert.description,
        "since": since(alert),
        "impact": alert.impact,
        "action": alert.action,
        "dashboard_url": dashboard_url(alert),
        "runbook_url": f"$runbook_url/{alert.full_name}.md",
    }
    if alert.level == "query":
        found["reason"] = alert.reason or ask_reason()
    if alert.level != "bare":
        found["trace_url"] = trace_url(alert)
    return found
