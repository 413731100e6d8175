"""`streamgauge demo`: four queries on a local Spark, and what the agent says of them, live.

One does plain work, one keeps state on RocksDB, one waits for data, one fails and is restarted;
after half a minute one hangs, is called stalled while it hangs, and recovers. No other service.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.model.query import Query
from streamgauge.model.verdict import judge
from streamgauge.steady import steady_time

from . import demo_table

if TYPE_CHECKING:
    from .agent import Agent

_HANG_AT_SECONDS = 30.0  # seconds after every query has found its pace
_HANG_AT_MOST_SECONDS = 240.0
_STALLED_FOR = 10.0  # how long a reader may look at it
_FAIL_EVERY_SECONDS = 25.0
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def add_parser(commands: Any) -> None:
    """Add `demo` to the command line."""
    demo = commands.add_parser("demo", help="watch the agent at work on a local Spark")
    demo.add_argument(
        "--seconds", type=float, default=120.0, help="how long (default 120; 0: until Ctrl-C)"
    )
    demo.add_argument(
        "--plain",
        action="store_true",
        help="lines instead of a live table (not on a terminal: always)",
    )
    demo.add_argument(
        "--metrics-address",
        default="127.0.0.1:9465",
        metavar="HOST:PORT",
        help="where to serve the page",
    )
    demo.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo to its end, or to Ctrl-C; leaves no process and no file behind."""
    missing = _missing(plain=args.plain)
    if missing:
        sys.stderr.write(f"streamgauge demo: {missing}\n")
        return 2
    plain = args.plain or not sys.stdout.isatty()
    home = Path(tempfile.mkdtemp(prefix="streamgauge-demo-"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    show = demo_table.PlainTable() if plain else demo_table.LiveTable()
    try:
        show.say("Starting a local Spark (takes some seconds) …")
        with _quiet_jvm(), _session(home) as spark:
            _play(spark, home, args, show)
    except KeyboardInterrupt:
        pass
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0


def _play(spark: Any, home: Path, args: argparse.Namespace, show: demo_table.Table) -> None:
    from .telemetry import TelemetryListener  # noqa: PLC0415 - needs Spark

    listener = TelemetryListener(
        app="demo",
        metrics_address=args.metrics_address,
        watch_seconds=1.0,
        silence_seconds=10.0,
        log_level="off",
        queries={
            "clicks": {"team": "web", "tier": "1"},
            "payments": {"team": "money", "tier": "1"},
        },
    )
    _warm_up(spark, home)
    spark.streams.addListener(listener)
    cast = Cast(spark, home)
    with contextlib.ExitStack() as stack:
        stack.callback(listener.close)
        stack.callback(cast.stop)
        cast.start()
        agent = listener._agent  # noqa: SLF001 - ours
        if agent is not None:
            _watch(agent, cast, args.seconds, show)
    show.say(
        "Done. Put the same line into your own job: spark.streams.addListener(TelemetryListener())"
    )


def _watch(agent: Agent, cast: Cast, seconds: float, show: demo_table.Table) -> None:
    """Redraw until the time is up, and make things happen on the way."""
    began = time.monotonic()
    show.say(_invite(agent.address))
    with show:
        while not seconds or time.monotonic() - began < seconds:
            age = time.monotonic() - began
            cast.direct(agent.queries, time.monotonic())
            show.draw(agent.queries, age, cast.told(time.monotonic()))
            time.sleep(0.5)


def _invite(address: str | None) -> str:
    """Where to look, and what to try next."""
    if address is None:
        return "Metrics: not served, no port is free. Press Ctrl-C to end."
    return (
        f"Metrics:   {address}/metrics\n"
        f"Live page: {address}/\n"
        f"Try:       curl -s {address}/metrics | grep query_state\n"
        f"           point a Prometheus at it; press Ctrl-C to end"
    )


class Cast:
    """The four queries and what befalls them."""

    def __init__(self, spark: Any, home: Path) -> None:
        self._spark = spark
        self._home = home
        self._fine = threading.Event()
        self._fine.set()
        self._warm_at: float | None = None
        self._hung_at: float | None = None
        self._stalled_at: float | None = None
        self._well_at: float | None = None
        self._last_failure = 0.0
        self._payments: Any = None

    def start(self) -> None:
        """Start all four."""
        rows = self._spark.readStream.format("rate").option("rowsPerSecond", 200).load()
        (self._home / "late").mkdir()
        late = self._spark.readStream.schema("value long").json(str(self._home / "late"))
        self._start(rows.writeStream.foreachBatch(self._write_clicks), "clicks")
        self._start(_count(rows).writeStream.format("noop").outputMode("update"), "sessions")
        self._start(late.writeStream.format("noop"), "late-files")
        self._restart_payments()

    def direct(self, queries: Mapping[str, Query], now: float) -> None:
        """Let happen what is due: the hang, its end, the restart of what failed."""
        if self._payments is not None and not self._payments.isActive:
            self._restart_payments()
        by_name = {query.label: query for query in queries.values()}
        clicks = by_name.get("clicks")
        if clicks is None or self._well_at is not None:
            return
        if self._warm_at is None:
            warm = [by_name.get(name) for name in ("clicks", "sessions", "payments")]
            self._warm_at = now if all(query and query.has_batch for query in warm) else None
        elif self._hung_at is None:
            if now - self._warm_at >= _HANG_AT_SECONDS:
                self._hung_at = now
                self._fine.clear()
        else:
            stalled = judge(clicks, steady_time()).state == "stalled"
            self._stalled_at = (self._stalled_at or now) if stalled else None
            seen = self._stalled_at is not None and now - self._stalled_at > _STALLED_FOR
            if seen or now - self._hung_at > _HANG_AT_MOST_SECONDS:
                self._well_at = now
                self._fine.set()

    def told(self, now: float) -> str:
        """What is going on, for the reader."""
        if self._warm_at is None:
            return "the queries find their pace"
        if self._hung_at is None:
            left = max(0.0, self._warm_at + _HANG_AT_SECONDS - now)
            return f"in {left:.0f} s the sink of clicks will hang"
        if self._well_at is None:
            return "the sink of clicks hangs: no event is sent, and still it is seen"
        return "the sink of clicks works again"

    def stop(self) -> None:
        """Let go of the hang and stop all four."""
        self._fine.set()
        for query in self._spark.streams.active:
            with contextlib.suppress(Exception):  # a query that is ending anyway
                query.stop()

    def _start(self, writer: Any, name: str) -> Any:
        place = str(self._home / "checkpoints" / name)
        writer = writer.queryName(name).option("checkpointLocation", place)
        return writer.trigger(processingTime="1 second").start()

    def _write_clicks(self, frame: Any, _: int) -> None:
        frame.count()
        self._fine.wait(_HANG_AT_MOST_SECONDS)

    def _write_payments(self, frame: Any, _: int) -> None:
        frame.count()
        if time.monotonic() - self._last_failure > _FAIL_EVERY_SECONDS:
            self._last_failure = time.monotonic()
            raise ConnectionError("the bank does not answer (password=hunter2)")

    def _restart_payments(self) -> None:
        if self._payments is None:
            self._last_failure = time.monotonic()
        rows = self._spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        self._payments = self._start(
            rows.writeStream.foreachBatch(self._write_payments), "payments"
        )


def _count(rows: Any) -> Any:
    """Something with state and a watermark."""
    return (
        rows.withWatermark("timestamp", "10 seconds")
        .selectExpr("window(timestamp, '5 seconds') as five", "value % 50 as user")
        .groupBy("five", "user")
        .count()
    )


def _warm_up(spark: Any, home: Path) -> None:
    """Have Spark load and compile what it needs: the first batches are slow enough to look hung."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = _count(rows).writeStream.format("noop").outputMode("update").trigger(once=True)
    writer.option("checkpointLocation", str(home / "warm-up")).start().awaitTermination()


@contextlib.contextmanager
def _session(home: Path) -> Iterator[Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("streamgauge-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.streaming.noDataProgressEventInterval", "2s")
        .config("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        with contextlib.suppress(Exception):  # the JVM may have got the same Ctrl-C
            spark.stop()
        gateway = type(spark.sparkContext)._gateway  # noqa: SLF001 - there is no public way
        if gateway is not None:
            with contextlib.suppress(Exception):
                gateway.shutdown()
                gateway.proc.stdin.close()
                gateway.proc.wait(10)


@contextlib.contextmanager
def _quiet_jvm() -> Iterator[None]:
    """Keep Spark's start-up words, and the Python traces of the planned failure, off the screen."""
    sys.stderr.flush()
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def _missing(*, plain: bool) -> str | None:
    """What keeps the demo from running, and the command that mends it."""
    for module, extra in (("pyspark", "spark"), *(() if plain else (("rich", "demo"),))):
        try:
            __import__(module)
        except ImportError:
            return f"{module} is not installed; pip install 'streamgauge[{extra}]' brings it"
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        return "Spark needs Java 17 or newer; `apt-get install openjdk-17-jre-headless` brings it"
    return None
