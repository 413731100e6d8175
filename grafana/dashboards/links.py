"""Ways out of a panel: to a query's board, to its traces, to the runbooks. All keep the time."""

from __future__ import annotations

from .board import Link

_CHOSEN = "${datasource:queryparam}&${job:queryparam}"
_ROW = "var-app=${__data.fields.Application:percentencode}&var-query=${__data.fields.Query:percentencode}"
QUERY_ROW = Link("Open this query", f"/d/streamgauge-query?{_CHOSEN}&{_ROW}&${{__url_time_range}}")
QUERY_LINE = Link(
    "Open this query",
    f"/d/streamgauge-query?{_CHOSEN}&var-app=${{__field.labels.app:percentencode}}"
    "&var-query=${__field.labels.query:percentencode}&${__url_time_range}",
)
RUNBOOK_ROW = Link("Runbook", "${runbooks}/${__data.fields.Alert}.md")
RUNBOOKS = Link("Runbooks", "${runbooks}/README.md")


# By the label `query`, which every batch and start carries: a span's name lacks what tells two queries
# of one name apart, and that of a query without a name is just `batch`.
# Backticks: a name that is escaped for a regular expression keeps its backslashes.
TRACE_SEARCH = (
    "{ resource.service.name =~ `${app:regex}`"
    " && span.spark.streaming.query.label =~ `${query:regex}` } with (most_recent=true)"
)


def explore(app: str, query: str) -> str:
    """Grafana's trace search on the batches and starts of a query.

    Two filters, one after the other: Grafana decodes a link, so that an escaped `&&` would end the parameter.
    For the same reason a link can't carry a name with `&`, `#`, `+` or `%` in it.
    """
    return (
        '/explore?left={"datasource":"${traces}","queries":[{"refId":"A","queryType":"traceql",'
        f'"query":"{{resource.service.name=\\"{app}\\"'
        f'}} | {{span.spark.streaming.query.label=\\"{query}\\"}} with (most_recent=true)"}}],'
        '"range":{"from":"${__from}","to":"${__to}"}}'
    )


EXPLORE_ROW = Link(
    "Traces of its batches",
    explore("${__data.fields.Application:percentencode}", "${__data.fields.Query:percentencode}"),
)
EXPLORE_LINE = Link(
    "Traces of its batches",
    explore("${__field.labels.app:percentencode}", "${__field.labels.query:percentencode}"),
)


def menu_url(uid: str, *, everything: bool) -> str:
    """Another board with what is chosen here.

    From a board of many queries to one of a single query without the query: Grafana would keep `$__all`
    there as if it were a name.
    """
    query = "&${query:queryparam}" if everything else ""
    return f"/d/{uid}?{_CHOSEN}&${{app:queryparam}}{query}"
