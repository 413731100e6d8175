"""What tracing costs, and what a dead collector costs; each figure a ratio measured side by side.

    python bench/traces.py handling     an event in the worker, with and without traces (no Spark)
    python bench/traces.py bus          the same on a real Spark: 12 queries, a trigger a second
    python bench/traces.py outage       the collector is killed again and again, and for a minute

Each prints its figures as lines of JSON. Windows alternate, so that a noisy machine is as noisy
for the one as for the other. Of a window the geometric mean counts, since some waits are a hundred times
others; the bound is the upper end of a 95 % confidence interval of the median ratio (signed ranks).
"""

from __future__ import annotations

import itertools
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import MEMORY, ROOT, report
from off_bus import Probe

from streamgauge.exporters import Exporter
from streamgauge.model.events import Progress
from streamgauge.model.phases import ENGINE_ORDER

os.environ["PATH"] = f"{ROOT / '.programs' / 'bin'}{os.pathsep}{os.environ['PATH']}"
QUERIES = 12
# Hadoop starts a process for each file of a checkpoint, and their crowd would be what is measured.
FEW_FILES = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "600000",
}
TURNS = (True, False, False, True)  # a machine that grows slower is slow for both
SETTINGS = {"metrics_address": "", "log_level": "off", "app": "bench"}


# ---- statistics -----------------------------------------------------------------------------


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median with the bounds of its 95 % confidence interval, by the signed ranks of pairs (Hodges-Lehmann).

    Where two things don't differ, a difference is as likely as its opposite; no more is assumed.
    """
    means = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2))
    count = len(values)
    spread = 1.96 * math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    low = max(0, math.floor(len(means) / 2 - spread))
    return means[low], statistics.median(means), means[-1 - low]


def ratios(below: list[float], above: list[float]) -> tuple[float, float, float]:
    """The interval of `above` ÷ `below`, pair by pair: a ratio is as likely as its inverse."""
    low, middle, high = interval([math.log(b / a) for a, b in zip(below, above, strict=True)])
    return math.exp(low), math.exp(middle), math.exp(high)


# ---- a collector ----------------------------------------------------------------------------


class Sink:
    """A collector in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.file = folder / "spans.txt"
        self.file.touch()
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        program = Path(__file__).with_name("otlp_sink.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(self.port), str(self.file)]
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise TimeoutError("the sink did not start")

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    @property
    def spans(self) -> int:
        """How many it has got in all its lives."""
        return sum(int(line) for line in self.file.read_text().split())


# ---- an event in the worker -----------------------------------------------------------------


def bench_handling(runs: int = 40, events: int = 240) -> None:
    """Processor time of the worker for an event, what of it is tracing, and the sender's."""
    from stage import Life, QuietDriver, recorded

    from streamgauge.agent import Agent
    from streamgauge.config import make_config
    from streamgauge.listener.inbox import Item

    progress = json.loads(recorded("4.3.0", "progress-agg-append-rocksdb"))
    progress = progress.get("progress", progress)
    with tempfile.TemporaryDirectory() as folder:
        sink = Sink(Path(folder))
        sink.start()
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{sink.port}"
        agents = {
            traces: Agent(make_config({**SETTINGS, "traces": traces}), driver=QuietDriver())
            for traces in ("off", "auto")
        }
        lives = [Life(f"query-{n}") for n in range(QUERIES)]
        for agent in agents.values():
            for life in lives:
                agent._worker.handle(Item("started", life.started(), time.time()))
        keep = ("stateOperators", "sources", "durationMs", "eventTime")
        taken, sent = ({name: [] for name in agents} for _ in range(2))
        for _ in range(runs + 2):
            texts = [
                lives[n % QUERIES].progress(
                    **{key: progress[key] for key in keep if key in progress}
                )
                for n in range(events)
            ]
            for name, agent in agents.items():
                began, whole = time.thread_time(), time.process_time()
                for text in texts:
                    agent._worker.handle(Item("progress", text, time.time()))
                    time.sleep(0.0005)  # a worker waits more than it works
                taken[name].append((time.thread_time() - began) / events)
                time.sleep(0.5)  # the sender works its queue off
                sending = time.process_time() - whole - taken[name][-1] * events
                sent[name].append(sending / events)
        off, on, sending = taken["off"][2:], taken["auto"][2:], sent["auto"][2:]
        for agent in agents.values():
            agent.close()
        sink.kill()
    added = interval([b - a for a, b in zip(off, on, strict=True)])
    share = interval([(b - a) / b for a, b in zip(off, on, strict=True)])
    report(
        "tracing's share of the worker's time for an event (upper bound)",
        share[2],
        0.6,
        median=share[1],
        runs=runs,
        events_a_run=events,
        without_us=statistics.median(off) * 1e6,
        with_us=statistics.median(on) * 1e6,
        sender_us=statistics.median(sending) * 1e6,
        added_us=added[1] * 1e6,
        added_us_low=added[0] * 1e6,
        added_us_high=added[2] * 1e6,
    )


# ---- a real Spark ---------------------------------------------------------------------------


def start_spark():
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("bench-traces")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        # Twelve queries a second must leave room on two cores, or only their own crowd is measured.
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def start_queries(spark, folder: str, count: int = QUERIES, **options: str) -> list:
    return [
        spark.readStream.format("rate")
        .option("rowsPerSecond", 10)
        .option("numPartitions", 1)
        .load()
        .writeStream.queryName(f"query-{number}")
        .format("noop")
        .option("checkpointLocation", f"{folder}/{number}")
        .options(**options)
        .trigger(processingTime="1 second")
        .start()
        for number in range(count)
    ]


def wait_for_events(events, seconds: float, least: int = 2 * QUERIES) -> None:
    """Wait so long, and on a busy machine until there is enough to take a median of."""
    deadline = time.monotonic() + 30
    time.sleep(seconds)
    while len(events) < least and time.monotonic() < deadline:
        time.sleep(0.1)


def bench_bus(runs: int = 36, seconds: float = 2.0) -> None:
    """Time on Spark's bus and in the worker, with and without traces, in turns within each run."""
    from streamgauge import TelemetryListener

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        sink = Sink(Path(folder))
        sink.start()
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{sink.port}"
        os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "250"  # sending falls into the turn that made it
        spark = start_spark()
        listener = TelemetryListener(**SETTINGS)
        probe = Probe(spark, listener._jlistener)
        spark.streams._jsqm.addListener(probe.java)
        agent, times = listener._agent, []
        worker = agent._worker
        worker._reports.time_event = lambda _, handling: times.append(handling)
        queries = start_queries(spark, folder, **FEW_FILES)
        time.sleep(25)  # warm up
        found = {True: [], False: []}
        for _ in range(runs):
            seen = {True: ([], []), False: ([], [])}
            for traced in TURNS:
                if traced is not (worker._tracer is not None):
                    worker._tracer = agent.traces if traced else None
                    time.sleep(0.35)
                times.clear()
                probe.read()
                wait_for_events(times, seconds, QUERIES)
                bus, handling = seen[traced]
                bus += [milliseconds / 1000 for milliseconds in probe.read()]
                handling += times
            for traced, columns in seen.items():
                found[traced].append([statistics.geometric_mean(column) for column in columns])
        for query in queries:
            query.stop()
        spark.streams._jsqm.removeListener(probe.java)
        listener.close()
        spark.stop()
        sink.kill()
    both = list(zip(found[False], found[True], strict=True))
    bus = ratios([off[0] for off, _ in both], [on[0] for _, on in both])
    added = interval([on[1] - off[1] for off, on in both])
    share = interval([(on[1] - off[1]) / on[1] for off, on in both])
    report(
        "bus time with traces / without, 12 queries, a trigger a second (upper bound)",
        bus[2],
        1.1,
        median=bus[1],
        low=bus[0],
        runs=runs,
        seconds_a_run=4 * seconds,
        bus_us_without=statistics.median(off[0] for off, _ in both) * 1e6,
        bus_us_with=statistics.median(on[0] for _, on in both) * 1e6,
        handling_us_without=statistics.median(off[1] for off, _ in both) * 1e6,
        handling_us_with=statistics.median(on[1] for _, on in both) * 1e6,
        handling_added_us=added[1] * 1e6,
        handling_added_us_low=added[0] * 1e6,
        handling_added_us_high=added[2] * 1e6,
        handling_share=share[1],
    )


# ---- a collector that dies ------------------------------------------------------------------


class Durations(Exporter):
    """An exporter that notes how long each batch took, and how many spans it is worth."""

    name = "durations"

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.spans = 0

    def handle(self, event, query) -> None:
        """Note a batch."""
        if isinstance(event, Progress):
            self.seconds.append(event.seconds)
            self.spans += 1 + len([phase for phase in ENGINE_ORDER if phase in event.phases])


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def bench_outage(pairs: int = 50, seconds: float = 2.5, count: int = 6) -> None:
    """The collector lives and dies in turns, then is dead for a whole minute; batches are timed."""
    from streamgauge import TelemetryListener

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        sink = Sink(Path(folder))
        sink.start()
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{sink.port}"
        os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "500"
        spark = start_spark()
        noted = Durations()
        listener = TelemetryListener(**SETTINGS, exporters=[noted])
        spark.streams.addListener(listener)
        agent = listener._agent
        queries = start_queries(spark, folder, count)
        time.sleep(25)  # warm up
        found = {True: [], False: []}
        for turn in range(pairs * 2):
            alive = TURNS[turn % 4]
            if alive:
                sink.kill()
                sink.start()
            else:
                sink.kill()
            noted.seconds = []
            wait_for_events(noted.seconds, seconds, 2 * count)
            found[alive].append(statistics.geometric_mean(noted.seconds))
        sink.kill()
        before, most, begun = resident_mb(), 0.0, dict(agent.stats.of("spans"))
        minute = time.monotonic() + 60
        while time.monotonic() < minute:
            time.sleep(1)
            most = max(most, resident_mb())
        dead = {k: v - begun.get(k, 0) for k, v in agent.stats.of("spans").items()}
        for query in queries:
            query.stop()
        time.sleep(3)
        began = time.monotonic()
        listener.close()
        closing = time.monotonic() - began
        received = sink.spans
        spark.stop()
    counted = dict(agent.stats.of("spans"))
    ratio = ratios(found[True], found[False])
    report(
        "batch time with the collector dead / alive (upper bound)",
        ratio[2],
        1.05,
        median=ratio[1],
        low=ratio[0],
        queries=count,
        pairs=pairs,
        seconds=seconds,
        batch_ms_alive=statistics.median(found[True]) * 1e3,
        batch_ms_dead=statistics.median(found[False]) * 1e3,
    )
    made = noted.spans + count  # and a start each
    report(
        "spans that were made and not counted",
        abs(made - sum(counted.values())),
        0,
        made=made,
        received=received,
        in_the_minute=dead,
        **counted,
    )
    report(
        "memory gained in a minute without a collector, MB",
        most - before,
        50,
        before=before,
        most=most,
    )
    report("seconds to close with a dead collector", closing, 2)


if __name__ == "__main__":
    for what in sys.argv[1:] or ["handling", "bus", "outage"]:
        {"handling": bench_handling, "bus": bench_bus, "outage": bench_outage}[what]()
