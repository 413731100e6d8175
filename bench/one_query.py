"""What listening costs the batches of one query, in turns within one application.

The agent and nobody take turns, there and back again: a machine that grows slower is slow for both. Whoever has
had its turn is gone altogether, the agent with its threads and its server.
"""

from __future__ import annotations

import random
import tempfile
import time
from datetime import datetime
from statistics import mean, median

from figures import MEMORY, report
from harness import build_session, commits
from pyspark.sql.streaming import StreamingQueryListener

from streamgauge import TelemetryListener
from streamgauge.listener.classic.bridge import Bridge, wrap_bridge

PAIRS, PAIR_SECONDS = 36, 2.4  # of batches, with and without
SETTLING = 0.5  # after each change of turns; what it costs to begin is not what it costs


class Stock(StreamingQueryListener):
    """The least that a PySpark listener can do."""

    def onQueryStarted(self, event):
        pass

    def onQueryProgress(self, event):
        pass

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        pass


class Bare(Bridge):
    """One call for the JSON, and nothing is done with it."""

    def _take(self, kind, jevent):
        jevent.json()


class BareListener(Stock):
    """Puts `Bare` on the bus."""

    _jlistener = property(lambda self: self.__dict__.setdefault("java", wrap_bridge(Bare(None))))


class Turn:
    """One listener's time, and how long each batch in it took."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.began = self.ended = 0.0
        self.batches: list[float] = []


class Application:
    """A Spark with one stateful query that runs batch after batch."""

    def __init__(self, folder: str, warm_up: int) -> None:
        self.spark = build_session(
            "bench-one-query",
            **{
                "spark.sql.streaming.numRecentProgressUpdates": "5000",  # all, asked for at the end
                "spark.sql.shuffle.partitions": "1",  # short batches: more of them in the time there is
            },
        )
        self.spark.sparkContext.setLogLevel("OFF")
        rows = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        self.query = (
            rows.groupBy("value").count().writeStream.format("noop").outputMode("update")
            .option("checkpointLocation", folder)
            .queryName("q").trigger(processingTime="0 seconds").start()
        )  # fmt: skip
        commits(self.query, warm_up, 120)

    def play(self, kinds: list[str], seconds: float) -> list[Turn]:
        """Give each its turn; two in a row of one kind are one stay and two turns."""
        turns, there = [], None
        for kind, following in zip(kinds, [*kinds[1:], None], strict=True):
            if there is None:
                there = self._bring(kind)
                time.sleep(SETTLING)
            turns.append(self._watch(Turn(kind), seconds))
            if following != kind:
                self._remove(there)
                there = None
        self._fill(turns)
        return turns

    def close(self) -> None:
        self.query.stop()
        self.spark.stop()

    def _bring(self, kind: str):
        if kind == "nobody":
            return kind
        if kind == "ours":
            listener = TelemetryListener(metrics_address="127.0.0.1:0", log_level="off")
        else:
            listener = Stock() if kind == "stock" else BareListener()
        self.spark.streams.addListener(listener)
        return listener

    def _remove(self, listener) -> None:
        if listener == "nobody":
            return
        self.spark.streams.removeListener(listener)
        if isinstance(listener, TelemetryListener):
            listener.close()

    def _watch(self, turn: Turn, seconds: float) -> Turn:
        turn.began = time.time()
        time.sleep(seconds)
        turn.ended = time.time()
        return turn

    def _fill(self, turns: list[Turn]) -> None:
        """Put each batch, in milliseconds, into the turn in which it began and ended."""
        for progress in self.query.recentProgress:
            began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
            took = progress["durationMs"]["triggerExecution"]
            for turn in turns:
                if turn.began <= began and began + took / 1000 <= turn.ended:
                    turn.batches.append(took)


def bench_batches() -> None:
    turns = play(["nobody", "ours", "ours", "nobody"] * (PAIRS // 2), PAIR_SECONDS, warm_up=60)
    times = {
        kind: [mean(turn.batches) for turn in turns if turn.kind == kind]
        for kind in ("ours", "nobody")
    }
    ratios = [ours / nobody for ours, nobody in zip(times["ours"], times["nobody"], strict=True)]
    chance = random.Random(7)
    medians = sorted(median(chance.choices(ratios, k=PAIRS)) for _ in range(4000))
    report(
        "batch duration with ÷ without, bootstrap 95 % upper bound of the median",
        medians[int(0.975 * len(medians))], 1.03,
        median=median(ratios), pairs=PAIRS, batches=sum(len(turn.batches) for turn in turns),
        ms_without=median(times["nobody"]),
    )  # fmt: skip


def play(kinds: list[str], seconds: float, *, warm_up: int) -> list[Turn]:
    """The turns of one application."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        application = Application(folder, warm_up)
        try:
            return application.play(kinds, seconds)
        finally:
            application.close()


if __name__ == "__main__":
    bench_batches()
