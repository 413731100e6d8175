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
    " && span.spark.streaming.query.label =~ `${query:regex}` }"
)


def explore(app: str, query: str) -> str:
    """Grafana's trace search on the batches and starts of a query."""
    return (
        '/explore?left={"datasource":"${traces}","queries":[{"refId":"A","queryType":"traceql",'
        f'"query":"{{resource.service.name=\\"{app}\\"'
        f' %26%26 span.spark.streaming.query.label=\\"{query}\\"}}"}}],'
        '"range":{"from":"${__from}","to":"${__to}"}}'
    )


EXPLORE_ROW = Link(
    "Traces of its batches",
    explore("${__data.fields.Application:percentencode}", "${__data.fields.Query:percentencode}"),
)
EXPLORE_CHOSEN = Link(
    "Traces of its batches", explore("${app:percentencode}", "${query:percentencode}")
)
