"""Jobs that are over before anybody looks: nothing they did is lost."""

import signal
import urllib.request

import pytest
from harness import run_job, start_job
from stage import free_port, page, value, wait_for

JOB = """
import os
from streamgauge import TelemetryListener

source = os.environ["JOB_DIR"] + "/in"
os.mkdir(source)
for n in range(4):
    with open(f"{source}/{n}.json", "w") as file:
        file.write("".join(f'{{"k": {i}}}\\n' for i in range(25)))
spark = build_session("short")
spark.sparkContext.setLogLevel("OFF")
spark.streams.addListener(TelemetryListener(metrics_address="", log_level="info"))
stream = spark.readStream.schema("k int").option("maxFilesPerTrigger", 1).json(source)

def start(name="files", **trigger):
    writer = stream.writeStream.format("noop").queryName(name).trigger(**trigger)
    return writer.option("checkpointLocation", os.environ["JOB_DIR"] + "/" + name).start()
"""


def _read(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return page(answer.read().decode())


def _env(tmp_path, port):
    return {"JOB_DIR": str(tmp_path), "STREAMGAUGE_PUSHGATEWAY_URL": f"http://127.0.0.1:{port}"}


@pytest.mark.parametrize(
    "end", ["sys.exit(3)", pytest.param("spark.stop()", marks=pytest.mark.integration)]
)
@pytest.mark.timeout(300)
def test_available_now_job_is_all_there_afterwards(gateway, tmp_path, end):
    """All batches and rows, though the gateway comes up only when the job is under way."""
    port = free_port()
    code = JOB + "start(availableNow=True).awaitTermination()\nprint('done', flush=True)\n" + end
    job = start_job(code, env=_env(tmp_path, port))
    wait_for((tmp_path / "files" / "offsets").exists, 200, "the job")
    gateway(port)
    out, err = job.communicate(timeout=200)
    assert "done" in out, err[-3000:]
    assert job.returncode == (3 if "exit" in end else 0)
    samples = _read(port)
    assert value(samples, "input_rows_total", query="files") == 100
    assert value(samples, "batches_total", query="files", data="true") == 4
    assert value(samples, "query_state", query="files", state="stopped") == 1
    assert value(samples, "query_terminations_total", query="files", outcome="stopped") == 1


@pytest.mark.timeout(300)
def test_sigterm_loses_no_batch(gateway, tmp_path):
    """A job told to end has told of every batch that it committed."""
    port = free_port()
    gateway(port)
    code = "commits(start(processingTime='1 hour'), 1)\nprint('up', flush=True)\ntime.sleep(300)"
    job = start_job(JOB + code, env=_env(tmp_path, port))
    assert job.stdout.readline() == "up\n", job.stderr.read()[-3000:]
    job.send_signal(signal.SIGTERM)
    _, err = job.communicate(timeout=60)
    assert job.returncode == -signal.SIGTERM
    samples = _read(port)
    assert value(samples, "input_rows_total", query="files") == 25, err[-3000:]
    assert value(samples, "query_active", query="files") == 0
    assert value(samples, "query_terminations_total", query="files", outcome="stopped") == 1


@pytest.mark.timeout(300)
def test_stop_and_dead_gateway_cost_two_seconds_and_a_run_without_data_says_so(tmp_path):
    """The second run of the job finds nothing new; the first one's numbers are Spark's."""
    done = run_job(
        JOB
        + """
for _ in range(2):
    query = start(once=True)
    query.awaitTermination()
spark.stop()
from streamgauge.agent import Agent
agent = Agent._shared
assert agent.stats.of("events") == {"started": 2, "progress": 1, "terminated": 2}, agent.stats.of("events")
began = time.monotonic()
agent._lifecycle._exit()
print("left", time.monotonic() - began, flush=True)
""",
        env=_env(tmp_path, free_port()),
        seconds=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout.split("left ")[1].split()[0]) < 2
    assert done.stderr.count('"processed": "nothing new"') == 1, done.stderr[-3000:]
