"""The JVM freezes or dies while Python lives on: told within polls, not when the budget is spent."""

import json

from harness import run_job

JOB = """
    import json, os, signal, tempfile
    from stage import page, wait_for
    from streamgauge import TelemetryListener

    spark = build_session()
    listener = TelemetryListener(metrics_address="127.0.0.1:0", watch_seconds=1.0)
    spark.streams.addListener(listener)
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rows.withWatermark("timestamp", "90 seconds").writeStream.format("noop")
    writer = writer.option("checkpointLocation", tempfile.mkdtemp())
    query = writer.queryName("orders").trigger(processingTime="5 minutes").start()
    commits(query, 1)
    agent = listener._agent
    told = []

    def state():
        samples = page(agent)
        (found,) = [
            dict(labels)["state"]
            for (name, labels), number in samples.items()
            if name == "streamgauge_query_state" and number == 1
        ]
        return found

    def verdict():
        from streamgauge.model.verdict import judge
        from streamgauge.steady import steady_time
        (found,) = agent.queries.values()
        return judge(found, steady_time())

    def series(name):
        return [n for (full, _), n in page(agent).items() if full == "streamgauge_" + name]

    def tell(what, began):
        words = verdict()
        told.append((what, words.state, words.reason, words.cause, time.monotonic() - began))

    wait_for(lambda: state() == "idle" or None, 60, "idle")
    wait_for(lambda: series("watermark_delay_seconds"), 20, "the details")
    delay = series("watermark_delay_seconds")
    budget = series("silence_budget_seconds")
    began = time.monotonic()
    os.kill(jvm, signal.SIGSTOP)
    wait_for(lambda: state() == "blind", 60, "blind")
    tell("frozen", began)
    fresh = series("freshness_lag_seconds")
    os.kill(jvm, signal.SIGCONT)
    began = time.monotonic()
    wait_for(lambda: state() == "idle", 60, "idle again")
    tell("thawed", began)
    began = time.monotonic()
    os.kill(jvm, signal.SIGKILL)
    wait_for(lambda: state() not in {"idle", "running"}, 60, "any word")
    tell("killed", began)
    wait_for(lambda: state() == "failed", 60, "failed")
    tell("gone", began)
    print(json.dumps({"told": told, "fresh": fresh, "delay": delay, "budget": budget}))
    sys.stdout.flush()
    os._exit(0)
"""


def test_frozen_jvm_is_blind_and_a_dead_one_failed():
    """In seconds, with that reason; no line of the log says that the query is not affected."""
    job = run_job(JOB)
    assert job.returncode == 0, job.stderr[-3000:]
    found = json.loads(job.stdout.strip().splitlines()[-1])
    assert found["budget"][0] > 900.0  # nothing here was found by silence
    told = {
        what: (state, reason, cause, took) for what, state, reason, cause, took in found["told"]
    }
    state, reason, cause, took = told["frozen"]
    assert state == "blind"
    assert reason.startswith("the JVM of the driver does not answer since ")
    assert cause == "the JVM of the driver does not answer"
    assert took < 20.0
    assert found["fresh"] == []
    assert told["thawed"][0] == "idle"
    state, reason, cause, took = told["killed"]
    assert state in {"blind", "failed"}
    assert "the JVM of the driver" in reason
    assert took < 10.0
    state, reason, cause, took = told["gone"]
    assert reason == "JVM_GONE: the JVM of the driver is gone: connection refused"
    assert took < 15.0
    assert "not affected" not in job.stderr
    assert "whether its queries run is unknown" in job.stderr
    assert found["delay"] == [90.0]
