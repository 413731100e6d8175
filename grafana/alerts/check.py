"""Ask a running Prometheus whether it has what the rules need."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import asdict, dataclass, field
from typing import Any

from streamgauge.errors import StreamgaugeError

from .catalogue import alert_names
from .prometheus import Export, needed_series
from .rule import select

# Absent on a healthy fleet, each for its reason; everything else must be there.
CONDITIONAL = {
    "streamgauge_alert_threshold": "only where a query overrides a rule parameter",
    "streamgauge_batch_duration_max_seconds": "from the first batch of a run on",
    "streamgauge_checkpoint_resets_total": "only where the checkpoint can be read",
    "streamgauge_checkpoint_shared": "only where the checkpoint can be read",
    "streamgauge_event_time_max_timestamp_seconds": "only with a watermark in the plan",
    "streamgauge_inflight_batch_seconds": "only while a trigger runs, on some versions",
    "streamgauge_inflight_task_age_seconds": "only while tasks run, and not on Connect",
    "streamgauge_query_commit_age_seconds": "only while a query runs in batches",
    "streamgauge_query_ended_timestamp_seconds": "only once a query ended",
    "streamgauge_query_expected": "only for queries that are declared",
    "streamgauge_query_reason_info": "only while something is wrong with a query",
    "streamgauge_query_silence_seconds": "only while a query runs in batches",
    "streamgauge_query_uncommitted_seconds": "only while a query runs in batches",
    "streamgauge_sink_idempotent": "absent when it can't be known",
    "streamgauge_source_backlog_bytes": "absent when it can't be known",
    "streamgauge_source_backlog_files": "absent when it can't be known",
    "streamgauge_source_backlog_rows": "absent when it can't be known",
    "streamgauge_source_backlog_versions": "only of Delta tables",
    "streamgauge_source_lag_seconds": "absent when it can't be known",
    "streamgauge_source_retention_headroom_seconds": "absent when it can't be known",
    "streamgauge_state_commit_seconds_total": "only for stateful queries",
    "streamgauge_state_memory_bytes": "only for stateful queries",
    "streamgauge_state_rocksdb_sst_file_bytes": "only for state in RocksDB",
    "streamgauge_state_rows": "only for stateful queries",
    "streamgauge_state_rows_dropped_by_watermark_total": "only for stateful queries",
    "streamgauge_state_rows_removed_total": "only for stateful queries",
    "streamgauge_state_rows_updated_total": "only for stateful queries",
    "streamgauge_state_snapshot_lag_versions": "only from Spark 4.1 on, for stateful queries",
    "streamgauge_state_store_instances": "only for stateful queries",
    "streamgauge_trigger_interval_seconds": "absent when unknown or not periodic",
    "streamgauge_watermark_delay_seconds": "only where the plan tells it",
    "streamgauge_watermark_timestamp_seconds": "only with a watermark in the plan",
}


class UnreachableError(StreamgaugeError):
    """Prometheus can't be asked; says which address and why."""


@dataclass(frozen=True)
class Findings:
    """What a Prometheus has and lacks. `missing` and `rule_errors` and `not_loaded` are wrong."""

    missing: dict[str, list[str]] = field(default_factory=dict)
    conditional: dict[str, str] = field(default_factory=dict)
    not_loaded: list[str] = field(default_factory=list)
    rule_errors: dict[str, str] = field(default_factory=dict)
    checked_series: int = 0
    checked_rules: int = 0

    @property
    def fine(self) -> bool:
        """Whether the rules can do their work."""
        return not (self.missing or self.not_loaded or self.rule_errors)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {"fine": self.fine, **asdict(self)}


def check(url: str, export: Export) -> Findings:
    """Compare what the rules need with what the Prometheus at `url` has. Raises UnreachableError."""
    match = urllib.parse.quote(select('{__name__=~"streamgauge_.*"}', export.selector))
    have = set(_get(url, f"/api/v1/label/__name__/values?match[]={match}"))
    loaded = [rule for group in _get(url, "/api/v1/rules")["groups"] for rule in group["rules"]]
    needed = needed_series(export)
    absent = {name: uses for name, uses in needed.items() if name not in have}
    names = {rule["name"] for rule in loaded}
    alerts = [name for name in alert_names() if name not in export.disabled]
    return Findings(
        missing={n: sorted(uses) for n, uses in absent.items() if n not in CONDITIONAL},
        conditional={name: CONDITIONAL[name] for name in absent if name in CONDITIONAL},
        not_loaded=[name for name in alerts if name not in names],
        rule_errors={
            rule["name"]: rule["lastError"]
            for rule in loaded
            if rule.get("lastError") and "streamgauge" in rule["query"]
        },
        checked_series=len(needed),
        checked_rules=len(alerts),
    )


def _get(url: str, path: str) -> Any:
    address = url.rstrip("/") + path
    if not address.startswith(("http://", "https://")):
        raise UnreachableError(
            f"{url} is not the address of a Prometheus, such as http://host:9090"
        )
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - checked above
            body = json.load(answer)
    except (OSError, ValueError) as error:
        raise UnreachableError(f"{address}: {error}") from error
    return body["data"]
