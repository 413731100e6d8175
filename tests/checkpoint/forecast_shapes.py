"""The shapes of queries that the forecasts are tried on: one function per shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = "k STRING, v INT, t TIMESTAMP"


def read_files(spark: Any, folder: Path, **options: str) -> Any:
    """A stream of JSON files, one file a batch."""
    options = {"maxFilesPerTrigger": "1"} | options
    return spark.readStream.schema(SCHEMA).options(**options).json(str(folder))


SHAPES: dict[str, Callable[[Any, Path], Any]] = {}


def shape(make: Callable[[Any, Path], Any]) -> Callable[[Any, Path], Any]:
    """Register one shape of a query under the function's name."""
    SHAPES[make.__name__.replace("_", "-")] = make
    return make


@shape
def plain(spark: Any, folder: Path) -> Any:
    """Rows as they come."""
    return read_files(spark, folder)


@shape
def at_once(spark: Any, folder: Path) -> Any:
    """All files in one batch."""
    return read_files(spark, folder, maxFilesPerTrigger="100")


@shape
def filtered(spark: Any, folder: Path) -> Any:
    """A filter that lets everything pass."""
    return read_files(spark, folder).where("v >= 0")


@shape
def projected(spark: Any, folder: Path) -> Any:
    """Other columns."""
    return read_files(spark, folder).selectExpr("k", "v + 1 AS w")


@shape
def two_sources(spark: Any, folder: Path) -> Any:
    """The union of two folders."""
    return read_files(spark, folder).union(read_files(spark, folder.with_name(folder.name + "-2")))


@shape
def swapped_sources(spark: Any, folder: Path) -> Any:
    """The same two folders, the other way round."""
    return read_files(spark, folder.with_name(folder.name + "-2")).union(read_files(spark, folder))


@shape
def other_folder(spark: Any, folder: Path) -> Any:
    """A folder that the checkpoint does not know."""
    return read_files(spark, folder.with_name(folder.name + "-2"))


@shape
def rate_micro_batch(spark: Any, _folder: Path) -> Any:
    """Another kind of source."""
    return rate(spark)


def rate(spark: Any) -> Any:
    """Three rows a batch, for ever."""
    options = {"rowsPerBatch": "3", "numPartitions": "1"}
    return spark.readStream.format("rate-micro-batch").options(**options).load()


@shape
def count_by_key(spark: Any, folder: Path) -> Any:
    """A count by a text key."""
    return read_files(spark, folder).groupBy("k").count()


@shape
def count_by_number(spark: Any, folder: Path) -> Any:
    """A count by a key of another type."""
    return read_files(spark, folder).groupBy("v").count()


@shape
def count_by_two_keys(spark: Any, folder: Path) -> Any:
    """A count by one key more."""
    return read_files(spark, folder).groupBy("k", "v").count()


@shape
def sum_by_key(spark: Any, folder: Path) -> Any:
    """Other aggregates by the same key."""
    return read_files(spark, folder).groupBy("k").agg({"v": "sum", "t": "max"})


@shape
def count_by_other_key(spark: Any, folder: Path) -> Any:
    """A count by another text column."""
    stream = read_files(spark, folder).selectExpr("concat(k, 'x') AS other", "v")
    return stream.groupBy("other").count()


@shape
def total_by_key(spark: Any, folder: Path) -> Any:
    """Another aggregate whose state has the same type."""
    return read_files(spark, folder).groupBy("k").agg({"v": "sum"})


@shape
def dedup_by_key(spark: Any, folder: Path) -> Any:
    """Duplicates of another column dropped."""
    return read_files(spark, folder).dropDuplicates(["k"])


@shape
def count_all(spark: Any, folder: Path) -> Any:
    """A count without a key: one partition."""
    return read_files(spark, folder).groupBy().count()


@shape
def dedup(spark: Any, folder: Path) -> Any:
    """Duplicates dropped."""
    return read_files(spark, folder).dropDuplicates(["v"])


@shape
def count_of_distinct(spark: Any, folder: Path) -> Any:
    """A second stateful operator below the first."""
    return read_files(spark, folder).dropDuplicates(["v"]).groupBy("k").count()


@shape
def limited(spark: Any, folder: Path) -> Any:
    """A limit: one partition."""
    return read_files(spark, folder).limit(100)


@shape
def join(spark: Any, folder: Path) -> Any:
    """A join of two streams: four stores a partition."""
    left = read_files(spark, folder).withWatermark("t", "1 hour")
    right = read_files(spark, folder.with_name(folder.name + "-2")).withWatermark("t", "1 hour")
    return left.alias("l").join(right.alias("r"), "v").selectExpr("v", "l.k")


@shape
def join_by_key(spark: Any, folder: Path) -> Any:
    """The same streams, joined by a column of another type."""
    left = read_files(spark, folder).withWatermark("t", "1 hour")
    right = read_files(spark, folder.with_name(folder.name + "-2")).withWatermark("t", "1 hour")
    return left.alias("l").join(right.alias("r"), "k").selectExpr("k", "l.v")


@shape
def join_unbounded(spark: Any, folder: Path) -> Any:
    """The same join without watermarks: its state is never cleaned."""
    left, right = read_files(spark, folder), read_files(spark, folder.with_name(folder.name + "-2"))
    return left.alias("l").join(right.alias("r"), "v").selectExpr("v", "l.k")


@shape
def windowed(spark: Any, folder: Path) -> Any:
    """Windows with a watermark: batches without data."""
    from pyspark.sql import functions

    stream = read_files(spark, folder).withWatermark("t", "1 second")
    return stream.groupBy(functions.window("t", "30 seconds"), "k").count()


@shape
def transform_with_state(spark: Any, folder: Path) -> Any:
    """Arbitrary state, in Python."""
    from forecast_processor import count_rows

    return count_rows(read_files(spark, folder))
