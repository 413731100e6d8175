"""A planned end of a real job, as two real Prometheis see it that scrape every few seconds."""

import contextlib
import json
import signal
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
from harness import start_job
from stage import free_port, program, wait_for

SECONDS = 3
JOB = """
import os
from streamgauge import TelemetryListener

def begin():
    spark = build_session("clean")
    spark.sparkContext.setLogLevel("OFF")
    spark.streams.addListener(
        TelemetryListener(metrics_address=os.environ["JOB_ADDRESS"], log_level="info")
    )
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rows.writeStream.format("noop").queryName("orders").trigger(processingTime="1 second")
    query = writer.option("checkpointLocation", os.environ["JOB_DIR"] + "/ckpt").start()
    commits(query, 1)
    print("up", flush=True)
    sys.stdin.readline()
    return spark, query
"""


class Prometheus:
    """One of a pair; ended by whoever made it."""

    def __init__(self, folder, target, name):
        folder.mkdir()
        config = {
            "global": {"scrape_interval": f"{SECONDS}s", "external_labels": {"replica": name}},
            "scrape_configs": [{"job_name": "spark", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self.port = free_port()
        self._process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, expression):
        """The values of an expression now, empty while Prometheus is not up."""
        query = urllib.parse.urlencode({"query": expression})
        with contextlib.suppress(OSError):
            url = f"http://127.0.0.1:{self.port}/api/v1/query?{query}"
            with urllib.request.urlopen(url, timeout=10) as answer:
                found = json.loads(answer.read())["data"]["result"]
                return [float(sample["value"][1]) for sample in found]
        return []

    def close(self):
        self._process.terminate()
        self._process.wait(20)


ACTIVE = 'last_over_time(streamgauge_query_active{query="orders"}[1h])'
SEEN = 'count_over_time(streamgauge_query_active{query="orders"}[1h])'


@pytest.fixture
def pair(tmp_path):
    """A driver's address, and two Prometheis that scrape it from one host."""
    target = f"127.0.0.1:{free_port()}"
    both = [Prometheus(tmp_path / name, target, name) for name in ("a", "b")]
    yield target, both
    for one in both:
        one.close()


def _begin(code, tmp_path, target, both):
    job = start_job(JOB + code, env={"JOB_DIR": str(tmp_path), "JOB_ADDRESS": target})
    assert job.stdout.readline() == "up\n", job.stderr.read()[-3000:]
    for one in both:
        wait_for(lambda one=one: (one.ask(SEEN) or [0])[0] >= 4, 60, "scrapes")
        assert one.ask(ACTIVE) == [1]
    return job


def _go_on(job):
    job.stdin.write("\n")
    job.stdin.flush()


@pytest.mark.parametrize("how", ["stop", "sigterm"])
@pytest.mark.timeout(300)
def test_both_prometheis_know_of_a_planned_end(pair, tmp_path, how):
    """All queries stopped, the session stopped, exit at once; or told to end by SIGTERM."""
    target, both = pair
    job = _begin("spark, query = begin()\nquery.stop()\nspark.stop()", tmp_path, target, both)
    began = time.monotonic()
    if how == "stop":
        _go_on(job)
    else:
        job.send_signal(signal.SIGTERM)
    _, err = job.communicate(timeout=100)
    seconds = time.monotonic() - began
    assert job.returncode == (0 if how == "stop" else -signal.SIGTERM), err[-3000:]
    assert [one.ask(ACTIVE) for one in both] == [[0], [0]], err[-3000:]
    assert "waiting until Prometheus has fetched the final state" in err
    assert "the final state was fetched" in err
    assert seconds < SECONDS + 12  # Spark's own end is in it


@pytest.mark.timeout(300)
def test_notebook_that_stops_its_session_keeps_serving_the_end(pair, tmp_path):
    """Nothing is waited for; each scrape until the query is forgotten finds it stopped; then it runs again."""
    target, both = pair
    code = """
spark, query = begin()
began = time.monotonic()
spark.stop()
print("stopped", time.monotonic() - began, flush=True)
sys.stdin.readline()
spark, query = begin()
"""
    job = _begin(code, tmp_path, target, both)
    _go_on(job)
    words = job.stdout.readline().split()
    assert words[0] == "stopped"
    for one in both:
        wait_for(lambda one=one: one.ask(ACTIVE) == [0], 2 * SECONDS + 5, "the end")
    before = both[0].ask(SEEN)[0]
    wait_for(lambda: both[0].ask(SEEN)[0] >= before + 2, 30, "more scrapes")
    assert both[0].ask(ACTIVE) == [0]
    _go_on(job)
    assert job.stdout.readline() == "up\n"
    wait_for(lambda: both[1].ask(ACTIVE) == [1], 30, "the new run")
    job.kill()
    job.communicate(timeout=30)
