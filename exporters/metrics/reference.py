"""The list of metrics as people read it: `docs/metrics.md` is written from the table by this."""

from __future__ import annotations

from collections.abc import Iterable

from .operators import OPERATOR_METRICS
from .providers import BATCH, CUMULATIVE, LEVEL, PROVIDER_METRICS, ProviderMetric
from .table import METRICS, QUERY, Metric

_KINDS = {
    LEVEL: "a level; shown as it is",
    BATCH: "a figure of the batch; added up",
    CUMULATIVE: "a total since the executor's start; passed on",
}


_OBSERVED = (
    "## Observed metrics",
    "",
    "`streamgauge_observed` has the numbers of `df.observe()`, of the last batch with data. Spark also runs batches without input, to move the",
    "watermark; what an observation says there replaces the value only where it is not 0 (behind an aggregation, which emits then).",
    "Between two scrapes values are lost, and they can't be added up. Fields that are counts, named in the query's setting `observed_counts`,",
    "are therefore also `streamgauge_observed_counted_total`: the sum over all batches, of all runs that this process saw. A batch that is replayed",
    "after a restart is counted: its first attempt was not committed and Spark sent no event of it. Negative values are never added.",
    "",
    "```python",
    'TelemetryListener(queries={"orders": {"observed_counts": ["quality.bad_rows", "audit.*"]}})',
    "```",
    "",
)
_OPERATORS = (
    "## Stateful operators",
    "",
    "What an operator counts in one batch is added up. Spark's source calls all of these sums over the tasks of a batch; the",
    "numbers of variables are the same in each, and are shown as they are. What is in no table of this page is in",
    "`streamgauge_state_custom`, as Spark gave it.",
    "",
)


def write_markdown() -> str:
    """The whole page."""
    agent = [m for m in METRICS.values() if m.labels[:2] != QUERY]
    tables = (OPERATOR_METRICS, PROVIDER_METRICS)
    elsewhere = {metric.name for table in tables for metric in table.values()}
    queries = [m for m in METRICS.values() if m not in agent and m.name not in elsewhere]
    return "\n".join(
        [
            "# Metrics",
            "",
            "Written by `make docs` from `exporters/metrics/table.py` and `exporters/metrics/providers.py`; a test says when",
            "it drifts. `streamgauge metrics` prints the same, `--json` for programs.",
            "",
            "Every series of a query has the labels `app` and `query`. What is not known is absent, never 0.",
            "Times are seconds since the epoch, durations are seconds, sizes are bytes.",
            "",
            "## Queries",
            "",
            *_table(queries),
            "",
            *_OBSERVED,
            *_OPERATORS,
            *_providers(OPERATOR_METRICS.values()),
            "",
            "## State store providers",
            "",
            "Spark reports some of these as a level, most for one batch alone, and a few as a total since the",
            "executor's start; its unit is milliseconds where ours is seconds. Each kind and unit was verified over",
            "ten batches and more on Spark 3.5 and 4.3, wherever they have it (`tests/spark/test_providers.py`); where",
            "every batch has the same value, Spark's source told a level from a batch's figure. The",
            "kinds of RocksDB's own counts hold for `spark.sql.streaming.stateStore.rocksdb.resetStatsOnLoad=true`,",
            "Spark's default. What Spark names and never measures is left out.",
            "",
            *_providers(PROVIDER_METRICS.values()),
            "",
            "## The agent itself",
            "",
            *_table(agent),
            "",
        ]
    )


def _table(metrics: list[Metric]) -> list[str]:
    return [
        "| series | type | labels | meaning |",
        "|---|---|---|---|",
        *(f"| `{m.full_name}` | {m.kind} | {_labels(m)} | {m.help} |" for m in metrics),
    ]


def _labels(metric: Metric) -> str:
    own = [label for label in metric.labels if label not in QUERY or metric.labels[:2] != QUERY]
    return ", ".join(f"`{label}`" for label in own)


def _providers(metrics: Iterable[ProviderMetric]) -> list[str]:
    return [
        "| series, label `operator` | Spark's name | what Spark's value is | meaning |",
        "|---|---|---|---|",
        *(
            f"| `{METRICS[p.name].full_name}` | `{p.spark}` | {_KINDS[p.kind]} | {p.help} |"
            for p in metrics
        ),
    ]
