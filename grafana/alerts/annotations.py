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


def ask(series: str, form: str = "humanize", more: str = "") -> str:
    """A number of this query, looked up when the alert fires; `unknown` where it is absent."""
    matcher = f"job=%q,app=%q,query=%q{',' + more if more else ''}"
    matcher = matcher.replace('"', '\\"')
    return (
        f'{{{{ with printf "max(streamgauge_{series}{{{matcher}}})"'
        " $labels.job $labels.app $labels.query | query }}"
        f"{{{{ . | first | value | {form} }}}}{{{{ else }}}}unknown{{{{ end }}}}"
    )


def label_in_url(label: str) -> str:
    """A label's value, escaped for the query part of a URL."""
    return f"{{{{ $labels.{label} | urlquery }}}}"


def dashboard_url(alert: Alert) -> str:
    """The alert's dashboard with this query selected."""
    chosen = "&".join(f"var-{name}={label_in_url(name)}" for name in _VARIABLES[alert.level])
    return f"$grafana_url/d/{alert.dashboard}" + (f"?{chosen}" if chosen else "")


def trace_url(alert: Alert) -> str:
    """Grafana's trace search, on the batches of this query (or the application's)."""
    search = 'resource.service.name="APP"'
    if alert.level == "query":
        search += ' && name="batch QUERY"'
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
    """All annotations of an alert, with knobs still as `$knob`."""
    found = {
        "summary": alert.summary,
        "description": alert.description,
        "impact": alert.impact,
        "action": alert.action,
        "dashboard_url": dashboard_url(alert),
        "runbook_url": f"$runbook_url/{alert.full_name}.md",
    }
    if alert.level != "bare":
        found["trace_url"] = trace_url(alert)
    return found
