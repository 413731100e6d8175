"""`streamgauge run`: an unchanged job, seen whole; its status, output and signals are its own."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyspark
import pytest
from stage import wait_for

JOB = """
import os, sys, time
import neighbour
from pyspark.sql import SparkSession

print("arguments", sys.argv[1:], __name__, neighbour.WORD, flush=True)
builder = SparkSession.builder.config("spark.ui.enabled", "false").appName("unchanged")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
spark = builder.master("local[2]").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
double = lambda n: n * 2
assert spark.sparkContext.parallelize([1, 2]).map(double).sum() == 6
for name, session in (("one", spark), ("two", spark.newSession())):
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = rows.writeStream.format("noop").queryName(name).trigger(once=True).start()
    query.awaitTermination()
print("ready", flush=True)
"""


@pytest.fixture
def job(tmp_path):
    """Starts the job with some last lines, through `streamgauge run` or spark-submit."""
    (tmp_path / "neighbour.py").write_text("WORD = 'hello'\n")
    started = []

    def start(last="", command=None, *arguments):
        path = tmp_path / "job.py"
        path.write_text(JOB + textwrap.dedent(last))
        env = {**os.environ, "STREAMGAUGE_METRICS_ADDRESS": "127.0.0.1:0"}
        command = command or [str(Path(sys.executable).parent / "streamgauge"), "run"]
        started.append(
            subprocess.Popen(
                [*command, str(path), *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=env,
                cwd=tmp_path,
            )
        )
        return started[-1]

    yield start
    for one in started:
        if one.poll() is None:
            one.kill()
            one.wait(30)


def _events(err):
    lines = [json.loads(line) for line in err.splitlines() if line.startswith('{"logger"')]
    return [line["event"] for line in lines if line["event"].startswith("query ")]


@pytest.mark.timeout(300)
def test_job_runs_as_by_python_and_is_seen_whole(job):
    """Arguments, neighbours and status are right; both sessions' queries are seen."""
    one = job("raise ValueError('wrong')", None, "--flag", "value")
    out, err = one.communicate(timeout=250)
    assert out.splitlines()[0] == "arguments ['--flag', 'value'] __main__ hello", err[-3000:]
    assert one.returncode == 1
    assert _events(err) == ["query started", "query stopped"] * 2


@pytest.mark.parametrize(
    "last",
    [
        "def work():\n    raise ValueError('wrong')\nwork()",
        "try:\n    1 / 0\nexcept ArithmeticError as error:\n    raise OSError('later') from error",
        "import sys\nsys.exit('in words')",
        "this is no Python",
    ],
)
def test_ends_to_the_letter_as_by_python(tmp_path, last):
    """The same words on both streams and the same status, whatever the end."""
    path = tmp_path / "job.py"
    path.write_text(f"print('hello', flush=True)\n{last}\n")
    tool = [str(Path(sys.executable).parent / "streamgauge"), "run"]
    ours, pythons = (
        subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
        for command in (tool, [sys.executable])
    )
    assert (ours.returncode, ours.stdout) == (pythons.returncode, pythons.stdout)
    assert ours.stderr == pythons.stderr


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.integration)]
)
@pytest.mark.timeout(300)
def test_signals_end_it_as_they_would(job, number):
    """SIGTERM kills, SIGINT raises KeyboardInterrupt, and the last state is told."""
    one = job("time.sleep(300)")
    lines = iter(one.stdout.readline, "")
    wait_for(lambda: next(lines).startswith("ready"), 250, "the job")
    one.send_signal(number)
    _, err = one.communicate(timeout=60)
    assert one.returncode == -number
    assert ("KeyboardInterrupt" in err) is (number == signal.SIGINT)
    assert _events(err).count("query stopped") == 2


@pytest.mark.timeout(300)
def test_spark_submit_runs_it_too(job):
    """With the script that `streamgauge run --script` names; Spark puts both streams into one."""
    tool = str(Path(sys.executable).parent / "streamgauge")
    script = subprocess.run([tool, "run", "--script"], capture_output=True, text=True, check=True)
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    python = ["--conf", f"spark.pyspark.python={sys.executable}"]
    one = job("sys.exit(4)", [submit, "--master", "local[2]", *python, script.stdout.strip()], "x")
    out, err = one.communicate(timeout=250)
    assert "arguments ['x'] __main__ hello" in out, err[-3000:]
    assert one.returncode == 4
    assert _events(out) == ["query started", "query stopped"] * 2
