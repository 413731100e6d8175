"""What each kind of sink does with a batch that it is handed a second time."""

from __future__ import annotations

import msgspec

REPEATS, SKIPS, DEPENDS = "writes it again", "skips it", "depends on the code"


class Sink(msgspec.Struct, frozen=True):
    """One kind of sink. `idempotent` is None where only the user's code can say it."""

    name: str
    idempotent: bool | None
    replay: str
    sentence: str
    reset: str


_SINKS = (
    Sink(
        "delta", True, SKIPS,
        "Delta remembers (query id, batch id) and skips a batch that it has; a new query id "
        "(a lost `metadata`, a new checkpoint) defeats this.",
        "The table keeps what it has; every batch of the new query id is appended again.",
    ),
    Sink(
        "iceberg", True, SKIPS,
        "Iceberg keeps query id and batch id in each snapshot it commits and skips a batch up to the newest "
        "one of this query; a new query id (a lost `metadata`, a new checkpoint) defeats this, and so does "
        "expiring the query's last snapshot or rolling the table back.",
        "The table keeps what it has; every batch of the new query id is appended again (in complete mode "
        "the first one replaces the table).",
    ),
    Sink(
        "file", True, SKIPS,
        "The file sink skips every batch up to the newest in its `_spark_metadata`; readers that "
        "honour that log see each row once.",
        "A new checkpoint on the old output silently skips batches 0 up to the newest in "
        "`_spark_metadata`: their rows are lost. Clear the output or write to a new one.",
    ),
    Sink(
        "kafka", False, REPEATS,
        "Kafka is at least once: the batch's records are sent again.",
        "Every record is sent again; consumers must drop what they have seen.",
    ),
    Sink(
        "jdbc", False, REPEATS,
        "There is no JDBC sink; in foreachBatch plain inserts are repeated, an upsert by key is not.",
        "Plain inserts are repeated; truncate the table or upsert by key.",
    ),
    Sink(
        "foreachBatch", None, DEPENDS,
        "The function is called again with the same batch_id; only code that looks at it avoids "
        "writing twice.",
        "Batch ids start at 0 again: code that skips known batch ids would skip new data.",
    ),
    Sink(
        "foreach", None, DEPENDS,
        "open(partition_id, epoch_id) is called again; rows may be spread over other partitions, so "
        "deduplicating by partition is not enough.",
        "Epoch ids start at 0 again: code that skips known epochs would skip new data.",
    ),
    Sink(
        "memory", True, SKIPS,
        "Only complete mode can start again from a checkpoint; it replaces the whole table.",
        "The table is in the driver's memory and gone with it.",
    ),
    Sink(
        "console", False, REPEATS,
        "The batch is printed again.",
        "Everything is printed again.",
    ),
    Sink(
        "noop", True, SKIPS,
        "Nothing is written, so nothing is written twice.",
        "Nothing is written.",
    ),
)  # fmt: skip
REMEMBER_BY_QUERY = frozenset({"delta", "iceberg"})  # skip a batch by (query id, batch id)
SINKS = {sink.name: sink for sink in _SINKS}
_FOLDED = {sink.name.lower(): sink for sink in _SINKS}
FILE_FORMATS = ("parquet", "json", "csv", "orc", "text", "avro")
_ALIASES = dict.fromkeys(FILE_FORMATS, "file")


def find_sink(name: str | None) -> Sink | None:
    """The sink of this name (file formats count as `file`); None when it is not known."""
    if name is None:
        return None
    return _FOLDED.get(_ALIASES.get(name.lower(), name).lower())
