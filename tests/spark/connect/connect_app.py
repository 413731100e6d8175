"""An application with the listener, in a process of its own, over Connect."""

import subprocess
import sys
import threading
import time
import urllib.request
from queue import Empty, Queue

from stage import page, value, wait_for

EXIT = 5.0
CLIENT = """
import sys, time
from pyspark.sql import SparkSession
from streamgauge import TelemetryListener

url = sys.argv[1]
listener = TelemetryListener(metrics_address="127.0.0.1:0", watch_seconds=1, log_level="off")

def connect():
    global spark
    spark = SparkSession.builder.remote(url).getOrCreate()

def start(name, session=None, **trigger):
    rows = (session or spark).readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    trigger = trigger or {"processingTime": "300 milliseconds"}
    return rows.writeStream.format("noop").queryName(name).trigger(**trigger).start()

for line in sys.stdin:
    try:
        exec(line, globals())
        print("ok", flush=True)
    except BaseException as error:
        print("error", repr(error), flush=True)
print("last", time.monotonic(), flush=True)
"""


class App:
    """An application of its own, told what to do line by line."""

    def __init__(self, port):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", CLIENT, f"sc://127.0.0.1:{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines = Queue()
        self._errors = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._complain, daemon=True).start()
        self.address = None

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def _complain(self):
        self._errors.extend(self._process.stderr)

    def tell(self, line, seconds=100, *, wait=True):
        """Have a line executed; what it printed."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        said = []
        while wait:
            try:
                said.append(self._lines.get(timeout=seconds))
            except Empty:
                raise AssertionError(f"{line!r} hangs: {''.join(self._errors)[-3000:]}") from None
            if said[-1] == "ok":
                break
            assert not said[-1].startswith("error"), said
        return said[:-1]

    def listen(self):
        """Connect, and add the listener."""
        self.tell("connect()")
        self.tell("spark.streams.addListener(listener)")
        self.address = self.tell("print(listener.address)")[0]

    def page(self):
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=20) as answer:
            return page(answer.read().decode())

    def state(self, query):
        samples = self.page()
        states = ("running", "idle", "blind", "starting", "failed", "stopped", "stalled")
        return next(
            (s for s in states if value(samples, "query_state", query=query, state=s)), None
        )

    def reason(self, query):
        """The verdict in words."""
        code = (
            "from streamgauge.model.verdict import judge; "
            "print([judge(q, time.time()).reason for q in listener._agent.queries.values() "
            f"if q.label == {query!r}][0])"
        )
        return self.tell(code)[0]

    def batches(self, query):
        return value(self.page(), "batches_total", query=query, data="true") or 0

    def exit(self):
        """Let the script end; the whole exit from its last line on, in seconds, and the status.

        Threads, exit handlers and the interpreter's own end are in it: the clock is the machine's.
        """
        self._process.stdin.close()
        status = self._process.wait(60)
        ended = time.monotonic()
        wait_for(lambda: not self._lines.empty(), 10, "the last word")
        word, at = self._lines.get().split()
        assert word == "last"
        return ended - float(at), status

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)


def goes_on(one, query):
    """Wait until more batches are seen, and the verdict is that it runs."""
    seen = one.batches(query)
    wait_for(lambda: one.batches(query) > seen + 1, 90, "more batches")
    wait_for(lambda: one.state(query) == "running", 30, "running")


def exits(one):
    """The whole process ends soon, and well."""
    took, status = one.exit()
    assert status == 0
    assert took < EXIT
