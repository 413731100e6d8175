"""Every series there is, declared once: exporter, docs, dashboards and alert checks read this table."""

from __future__ import annotations

from msgspec import Struct

from .operators import OPERATOR_METRICS
from .providers import PROVIDER_METRICS

PREFIX = "streamgauge_"
QUERY = ("app", "query")
INFO = (
    *("query_id", "run_id", "app_id", "spark_version", "sink", "output_mode", "trigger"),
    *("state_provider", "checkpoint", "code_version", "team", "env", "tier"),
)


class Metric(Struct, frozen=True):
    """One metric family."""

    name: str  # without the prefix; a counter's ends in _total
    kind: str  # gauge, counter or histogram
    labels: tuple[str, ...]
    help: str

    @property
    def full_name(self) -> str:
        """The name as it is on the page."""
        return PREFIX + self.name


def _gauge(name: str, words: str, *labels: str) -> Metric:
    return Metric(name, "gauge", (*QUERY, *labels), words)


def _counter(name: str, words: str, *labels: str) -> Metric:
    return Metric(name, "counter", (*QUERY, *labels), words)


def _agent(name: str, kind: str, words: str, *labels: str) -> Metric:
    return Metric(name, kind, labels, words)


_QUERY_METRICS = (
    _gauge("query_info", "The evidence, for joins; always 1, exactly one a query.", *INFO),
    _gauge("query_state", "The verdict: 1 for the state the query is in, 0 for the others.", "state"),
    _gauge("query_active", "Whether the query is running, as far as can be seen."),
    _gauge("query_trigger_active", "Whether a trigger is being worked on, at the last look."),
    _gauge("query_data_available", "Whether there is data to process, at the last look."),
    _gauge("query_started_timestamp_seconds", "When the present run began."),
    _counter("query_starts_total", "Starts and restarts that were seen."),
    _counter("query_terminations_total", "Ends that were seen, by outcome (stopped, failed, unknown) and error class.", "outcome", "error_class"),
    _gauge("query_ended_timestamp_seconds", "When the newest run ended; absent while it runs."),
    _gauge("query_failure_info", "Why the newest run failed, as labels; always 1. error_class is Spark's class of the failure, cause_class that of the innermost cause (empty when it is the same or unknown), message the first line of that cause, masked. Absent unless the query is failed.", "error_class", "cause_class", "message"),
    _gauge("query_reason_info", "Why the query is in its state, in words, as labels; always 1. Only while the state is falling_behind, stalled, restarting, failed or blind, or stopped with an unknown outcome. The words have no ages or counts in them, so that a state that lasts is one series.", "state", "reason"),
    _gauge("last_event_timestamp_seconds", "When the last event of any kind was received."),
    _gauge("query_silence_seconds", "Time since the last event or the start, by a clock that no step of the driver's clock moves; absent unless the query is active, and in continuous mode."),
    _gauge("query_uncommitted_seconds", "Time since the last commit, the last idle event or the start; absent as query_silence_seconds is."),
    _gauge("query_commit_age_seconds", "Time since the last commit or the start; absent as query_silence_seconds is."),
    _gauge("last_idle_timestamp_seconds", "When the last idle event was received."),
    _gauge("last_progress_timestamp_seconds", "When the last batch ended: start of its trigger plus its length."),
    _gauge("last_commit_timestamp_seconds", "When the last batch was committed, of any run."),
    _gauge("last_committed_batch_id", "Number of the last committed batch."),
    _gauge("inflight_batch_started_timestamp_seconds", "When the trigger that runs now began; absent when none does."),
    _gauge("inflight_batch_seconds", "For how long the trigger that runs now has run; 0 when none does, absent when that can't be seen."),
    _gauge("inflight_tasks", "Tasks of the running batch, by state (running, completed, failed); classic Spark only.", "state"),
    _gauge("inflight_last_task_timestamp_seconds", "When a task of the running batch was last seen to finish."),
    _gauge("inflight_task_age_seconds", "Time since a task of the running batch was last seen to finish; absent when none was."),
    _gauge("trigger_interval_seconds", "Trigger interval; 0 = as fast as possible; absent when unknown or not periodic."),
    _gauge("silence_budget_seconds", "For how long this query may be silent before that is wrong."),
    _gauge("freshness_lag_seconds", "Time since the trigger of the newest committed batch, or since there last was nothing to do; 0 when idle, absent while the verdict is blind."),
    _counter("batches_total", "Committed batches; data = some source's end offset differs from its start.", "data"),
    _counter("batches_replayed_total", "Batches run again from the offset log after a restart."),
    Metric("batch_duration_seconds", "histogram", QUERY, "Length of the whole trigger, of batches with data; where the driver's clock was set during a batch, at most the time since the previous sign of its run."),
    _gauge("batch_duration_max_seconds", "Longest batch of the last hour; absent when there was none."),
    _counter("phase_duration_seconds_total", "Time in each of Spark's phases of a batch; triggerExecution, which wraps them, is not among them.", "phase"),
    _counter("input_rows_total", "Rows read, as Spark counts them: what is scanned twice, or read again since a worker was lost with it, counts twice."),
    _counter("output_rows_total", "Rows written; absent where the sink does not tell."),
    _gauge("input_rows_per_second", "Rows per second that Spark found for the last batch (0 in the first batch of a run); 0 after an idle event; absent when stalled, blind, ended, or when the next batch is overdue."),
    _gauge("processed_rows_per_second", "Rows per second that Spark processed in the last batch; absent when idle, stalled, blind, ended, or when the next batch is overdue."),
    _counter("source_input_rows_total", "Rows read from one source.", "source"),
    _gauge("source_backlog_rows", "Rows that wait: the newest known latest offsets less the committed ones; absent when it can't be known.", "source"),
    _gauge("source_backlog_files", "Files that wait, where the source reports them or a look at its log and folder tells.", "source"),
    _gauge("source_backlog_bytes", "Bytes that wait, where the source reports them or a look at its log and folder tells.", "source"),
    _gauge("source_backlog_versions", "Versions of a Delta table that were not read whole, as the source or a look at the table's log tells.", "source"),
    _gauge("source_partition_backlog_rows", "Rows that wait in a partition; of as many partitions as the setting `partition_series` allows, those furthest behind.", "source", "topic", "partition"),
    _gauge("source_partition_backlog_max_rows", "Rows that wait in the partition that is furthest behind; times source_partitions, over source_backlog_rows: the skew.", "source"),
    _gauge("source_partitions", "Partitions that there are, at the last look.", "source"),
    _gauge("source_partitions_stalled", "Partitions with rows to read of which the last batch read none, while it read of others.", "source"),
    _counter("source_partitions_added_total", "Partitions that appeared.", "source"),
    _counter("source_partitions_removed_total", "Partitions that vanished.", "source"),
    _counter("source_offset_resets_total", "Times that offsets went backwards: a topic was recreated.", "source"),
    _gauge("source_offset", "Offsets of the last batch (start, end) and the newest known ones (latest), summed over partitions, where they count rows.", "source", "kind"),
    _gauge("source_rate_limited", "Whether the last batch was cut short of what there was to read (maxOffsetsPerTrigger).", "source"),
    _gauge("source_lag_seconds", "Age of the oldest row that waits; 0 when none does, absent when the agent's history does not reach back to it.", "source"),
    _gauge("source_drain_seconds", "Time until no row waits, at the pace of the last batches; absent when it would never come.", "source"),
    _gauge("source_retention_headroom_seconds", "Time until retention deletes a row that waits; 0: it has. With the probe only.", "source"),
    _counter("source_rows_lost_total", "Rows that retention deleted before they were read. With the probe only.", "source"),
    _gauge("sink_idempotent", "Whether a replayed batch leaves the sink's data as it was; absent when it can't be known."),
    _gauge("watermark_timestamp_seconds", "The watermark that the last batch used; absent until set."),
    _gauge("watermark_delay_seconds", "Largest watermark delay in the query's plan; absent without a watermark, and where the plan can't be read (Spark Connect)."),
    _gauge("event_time_min_timestamp_seconds", "Oldest event time in the last batch that had any."),
    _gauge("event_time_avg_timestamp_seconds", "Mean event time in the last batch that had any."),
    _gauge("event_time_max_timestamp_seconds", "Newest event time in the last batch that had any."),
    _gauge("state_rows", "Rows in the state store.", "operator"),
    _gauge("state_memory_bytes", "Memory of the state store, summed over partitions.", "operator"),
    _gauge("state_store_instances", "State store instances: partitions times stores.", "operator"),
    _gauge("state_snapshot_lag_versions", "Versions since the last uploaded snapshot of the store that lags most (Spark 4.1+).", "operator"),
    _counter("state_rows_updated_total", "Rows added or changed.", "operator"),
    _counter("state_rows_removed_total", "Rows evicted.", "operator"),
    _counter("state_rows_dropped_by_watermark_total", "Rows dropped because their event time was before the watermark. Spark counts them after partial aggregation: rows of one key and window that were combined count once, so more rows may be lost (156 counted for 228).", "operator"),
    _counter("state_commit_seconds_total", "Time in commits, summed over tasks; not wall time.", "operator"),
    _counter("state_update_seconds_total", "Time in updates, summed over tasks; not wall time.", "operator"),
    _counter("state_removal_seconds_total", "Time in removals, summed over tasks; not wall time.", "operator"),
    _gauge("state_custom", "Spark state metrics that have no series of their own.", "operator", "metric"),
    _gauge("observed", "Numbers of df.observe(), of the last batch with data.", "name", "field"),
    _counter("observed_counted_total", "Numbers of df.observe(), added up over all batches; only fields that the setting `observed_counts` names.", "name", "field"),
    _gauge("checkpoint_last_offset_batch_id", "Newest batch in the checkpoint's offsets/: planned."),
    _gauge("checkpoint_last_commit_batch_id", "Newest batch in the checkpoint's commits/: done."),
    _gauge("checkpoint_last_commit_timestamp_seconds", "When the newest file in commits/ was written."),
    _gauge("checkpoint_uncommitted_batches", "Batches that are planned and not committed; a restart runs the last of them again."),
    _gauge("checkpoint_state_bytes", "Size of all files in the checkpoint's state/; with the setting `checkpoint_state_size`."),
    _gauge("checkpoint_findings", "1 for each rule that the names in the checkpoint, or a batch id that went backwards, break.", "rule"),
    _counter("checkpoint_resets_total", "Restarts under the same name with a new query id: another checkpoint."),
    _gauge("checkpoint_shared", "Whether another live query of this application has the same checkpoint."),
    _gauge("alerting_enabled", "0 when the settings take this query out of alerting."),
    _gauge("alert_threshold", "A threshold of the alert rules that the settings change for this query, by the name of the rule parameter.", "name"),
    _gauge("query_expected", "1 when the settings say that this query must be running."),
)  # fmt: skip

_PROVIDER_METRICS = tuple(
    Metric(
        metric.name,
        "counter" if metric.counter else "gauge",
        (*QUERY, "operator"),
        f"{metric.help} Spark's {metric.spark}.",
    )
    for metric in (*OPERATOR_METRICS.values(), *PROVIDER_METRICS.values())
)

_AGENT_METRICS = (
    _agent("agent_events_total", "counter", "Events handled, by kind; duplicate: seen before and not counted again.", "kind"),
    _agent("agent_events_dropped_total", "counter", "Events given up because the inbox was full, by kind.", "kind"),
    _agent("agent_fallback_events_total", "counter", "Events that came by a slower way than the queue in the JVM: by a callback into Python, or through PySpark's public objects."),
    _agent("agent_missed_batches_total", "counter", "Batch ids that were never seen. Idle events that are lost leave no gap and are not counted."),
    _agent("agent_bus_dropped_events_total", "counter", "Events that Spark's own listener bus dropped (queue `streams`)."),
    _agent("agent_errors_total", "counter", "Failures of the agent's own parts; the query never notices.", "part"),
    _agent("agent_spans_total", "counter", "Spans, by outcome: exported, failed (not taken), dropped (no room, or no time at the end), unsampled, handed_over (to the user's own provider).", "outcome"),
    _agent("agent_callback_seconds", "histogram", "Time of one event in Python on Spark's listener thread; absent while none of ours runs there."),
    _agent("agent_handling_seconds", "histogram", "Time of one event in the agent's worker."),
    _agent("agent_heartbeat_age_seconds", "gauge", "Time since the worker's last sign of life, by a clock that no step of the driver's clock moves."),
    _agent("agent_clock_timestamp_seconds", "gauge", "The driver's wall clock at this scrape."),
    _agent("agent_heartbeat_timestamp_seconds", "gauge", "The worker's last sign of life."),
    _agent("agent_inbox_events", "gauge", "Events waiting for the worker."),
    _agent("agent_series", "gauge", "Series of queries that count against the limit: on this page, and room for what a look adds."),
    _agent("agent_series_limit", "gauge", "Past so many, new label sets are refused."),
    _agent("build_info", "gauge", "Version of the agent and of Spark.", "app", "version", "spark_version"),
)  # fmt: skip

METRICS = {m.name: m for m in (*_QUERY_METRICS, *_PROVIDER_METRICS, *_AGENT_METRICS)}
SPAN_OUTCOMES = ("exported", "failed", "dropped", "unsampled", "handed_over")
EVENT_KINDS = ("started", "progress", "idle", "terminated")
PARTS = (
    "decoder",
    "prometheus",
    "live",
    "logs",
    "server",
    "pushgateway",
    "watchdog",
    "checkpoint",
    "recorder",
    "series",
    "bridge",
    "traces",
)
