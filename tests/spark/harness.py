"""A real Spark, one a test run, and queries on it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from stage import ROOT, wait_for


def build_session(name="streamgauge-tests", **conf):
    """A small Spark: two cores, no UI, nothing left behind in the working directory."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # of Spark's Python workers too
    builder = SparkSession.builder.master("local[2]").appName(name)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
        **conf,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The session that most tests share."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("spark"))  # the JVM stays where it was started
    session = build_session()
    os.chdir(before)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def listen(spark):
    """Adds a listener with settings, and takes it off again."""
    from streamgauge import TelemetryListener

    added = []

    def add(**settings):
        settings.setdefault("metrics_address", "127.0.0.1:0")
        settings.setdefault("watch_seconds", 0.2)
        settings.setdefault("log_level", "off")
        listener = TelemetryListener(**settings)
        spark.streams.addListener(listener)
        added.append(listener)
        return listener

    yield add
    for query in spark.streams.active:
        query.stop()
    for listener in added:
        spark.streams.removeListener(listener)
        listener.close()


@pytest.fixture
def rows(spark):
    """A stream of ten rows a batch."""
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()


def commits(query, batches, seconds=60):
    """Wait until a query has committed so many batches, by Spark's own word."""

    def enough():
        if query.exception() is not None:
            raise AssertionError(str(query.exception()))
        last = query.lastProgress
        return last is not None and last["batchId"] >= batches - 1

    return wait_for(enough, seconds, f"{batches} commits")


def run_job(code, *, env=None, seconds=200):
    """Run a PySpark job as a process of its own; it may use `build_session`."""
    job = start_job(code, env=env)
    try:
        out, err = job.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        job.kill()
        out, err = job.communicate()
        raise AssertionError(f"the job took over {seconds} s:\n{out}\n{err[-3000:]}") from None
    return subprocess.CompletedProcess(job.args, job.returncode, out, err)


def start_job(code, *, env=None):
    """Start such a job and let it run."""
    places = [str(ROOT / "tests"), str(ROOT / "tests" / "spark")]
    header = (
        f"import sys, time\nsys.path[:0] = {places!r}\nfrom harness import build_session, commits\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", header + textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
