"""A standalone cluster that loses a worker, then the driver: the numbers stay right.

One story, played once: batches 0 to 2 in the first life of the driver, with a worker killed in batch 1;
the driver killed in batch 3 and handed in again; batch 4 fails by its own code, and the job starts the
query again; a worker killed in batch 5 after it has read its part. What the agent said is held against what
Spark and the job left on disk.
"""

import subprocess
import sys
import sysconfig
import venv

import pytest
from cluster_story import BROKEN, HELD_DRIVER, HELD_WORKER, JOB, LATE, Job, play
from collectors import jaeger
from stage import ROOT
from standalone import standalone
from theatre import ids_of_batch

from streamgauge.exporters.traces import ids as span_ids

P = "spark.streaming."
OPERATOR = "0-dedupe"
pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, from this checkout."""
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--installer", "uv", "--outdir", str(out)],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python that has PySpark and what the agent needs, and not the agent."""
    home = tmp_path_factory.mktemp("python")
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    # A folder in a .pth file is searched, but the .pth files in it, such as this checkout's, are not read.
    (site / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    done = subprocess.run([home / "bin" / "python", "-c", "import streamgauge"], check=False,
                          cwd=home, capture_output=True, text=True)  # fmt: skip
    assert "No module named 'streamgauge'" in done.stderr
    return home / "bin" / "python"


@pytest.fixture(scope="module")
def story(wheel, python, tmp_path_factory):
    """The story, and the trace store that it was told to."""
    folder = tmp_path_factory.mktemp("cluster")
    job = Job(folder / "job")
    with jaeger(folder) as store:
        environ = {
            "STREAMGAUGE_METRICS_ADDRESS": "127.0.0.1:0",
            "STREAMGAUGE_SD_FILE": str(job.folder / "target.json"),
            "STREAMGAUGE_WATCH_SECONDS": "0.5",
            "STREAMGAUGE_CHECKPOINT_SECONDS": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{store.http}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
        with standalone(folder / "spark", workers=("worker-a", "worker-b")) as cluster:
            played = play(
                cluster,
                job,
                store,
                lambda name: cluster.submit(
                    name, [str(JOB), str(job.folder)], python=python, py_files=wheel, **environ
                ),
            )
        yield played, store


def test_agent_came_with_py_files(story, wheel):
    """What `--py-files` carries is what ran; the job ended well, and its discovery file with it."""
    played, _ = story
    apps = played.job.told("application")
    assert len(apps) == 2
    assert all(wheel.name in app["agent"] for app in apps)
    assert {app["id"] for app in apps} == played.applications
    assert played.status == 0
    assert played.lives[0][-1].info["app_id"] == apps[0]["id"]
    assert played.end.info["app_id"] == apps[1]["id"]
    assert not (played.job.folder / "target.json").exists()
    assert played.left, "a killed driver leaves its file"


def test_story_went_as_planned(story):
    """On disk: six batches, each read whole, each id once in the sink."""
    played, _ = story
    truth = played.job.truth
    assert truth.committed() == truth.planned() == list(range(6))
    assert all(truth.with_data(batch) for batch in range(6))
    ids = [one for batch in range(6) for one in truth.input_ids(batch)]
    assert sorted(truth.output_ids()) == sorted(set(ids))
    assert len(ids) > len(set(ids)) > 1000


def test_lost_worker_is_a_retry_and_no_failure(story):
    """Tasks as they are on the workers; the lost one failed and was done by the other worker."""
    played, _ = story
    assert len(played.lost) == 1
    (lost,) = played.lost
    tried = played.job.marks(HELD_WORKER)
    assert lost._replace(attempt=1, worker="worker-b") in tried
    assert not {mark for mark in tried if mark.worker == "worker-a"} - played.lost
    held, retried = played.held, played.retried
    assert held.value("inflight_tasks", state="failed") == 0
    assert retried.value("inflight_tasks", state="failed") == 1
    assert retried.value("inflight_tasks", state="running") == 1
    assert retried.value("inflight_tasks", state="completed") == 0
    assert retried.value("last_committed_batch_id") == HELD_WORKER - 1
    assert retried.value("checkpoint_uncommitted_batches") == 1
    last = played.lives[0][-1]
    assert last.value("query_starts_total") == 1
    assert last.value("batches_replayed_total") == 0
    assert last.value("query_terminations_total", outcome="failed") == 0


def test_driver_was_killed_in_mid_batch(story):
    """Its last page: three batches, a fourth planned and at work; its successor did that one again."""
    played, _ = story
    assert played.planned.value("last_committed_batch_id") == HELD_DRIVER - 1
    assert played.planned.value("checkpoint_last_offset_batch_id") == HELD_DRIVER
    assert played.planned.value("inflight_batch_seconds") > 0
    assert played.job.marks(HELD_DRIVER)
    assert played.lives[0][-1].committed == HELD_DRIVER


def test_counters_are_the_truth_of_each_life(story):
    """Batches, rows and state, from 0 in each life; both together are what is on disk."""
    played, _ = story
    truth = played.job.truth
    seen = set()
    for pages, batches in zip(played.lives, (range(3), range(3, 6)), strict=True):
        begun, last = next(p for p in pages if p.value("query_starts_total")), pages[-1]
        assert begun.value("query_starts_total") == 1
        assert begun.value("batches_total", data="true") == begun.value("input_rows_total") == 0
        rows = [one for batch in batches for one in truth.input_ids(batch)]
        new = set(rows) - seen
        seen |= new
        assert last.value("batches_total", data="true") == len(batches)
        assert last.value("batches_total", data="false") == 0
        assert last.value("batch_duration_seconds_count") == len(batches)
        again = _read_again(played) if LATE in batches else 0
        assert last.value("input_rows_total") == len(rows) + again
        assert last.value("source_input_rows_total", source="0-file") == len(rows) + again
        assert last.value("state_rows_updated_total", operator=OPERATOR) == len(new)
        assert last.value("state_rows_removed_total", operator=OPERATOR) == 0
        assert last.value("state_rows", operator=OPERATOR) == len(seen)
        assert last.value("state_store_instances", operator=OPERATOR) == 2
        assert last.value("last_committed_batch_id") == batches[-1]
        committed_at = truth.committed_at(batches[-1])
        assert last.value("last_commit_timestamp_seconds") == pytest.approx(committed_at, abs=2)
    assert seen == set(truth.output_ids())
    assert played.end.value("query_starts_total") == 2
    assert played.end.value("batches_replayed_total") == 2
    assert played.end.value("query_terminations_total", outcome="unknown") == 0
    assert _failures(played.end) == 1
    assert played.end.value("checkpoint_uncommitted_batches") == 0
    assert played.end.value("source_backlog_files", source="0-file") == 0


def _read_again(played):
    """Rows that Spark read twice since the worker with the first reading died, by Spark's own figure."""
    (end,) = played.job.told("end")
    (rows,) = {n for batch, n in end["rows"] if batch == LATE and n}
    return rows - len(played.job.truth.input_ids(LATE))


def test_rows_of_a_lost_reading_count_twice_as_spark_counts_them(story):
    """Tasks that had ended run again, since their shuffle files are lost: Spark adds their rows again.

    All of them here: with a worker Spark gives up the files of its whole host, and both are on one.
    """
    played, _ = story
    assert 0 < _read_again(played) <= len(played.job.truth.input_ids(LATE))
    assert played.late.states == {"running"}


def _failures(page):
    """Failed ends over all error classes."""
    return sum(
        number
        for (name, labels), number in page.samples.items()
        if name.endswith("_query_terminations_total") and ("outcome", "failed") in labels
    )


def test_no_page_counts_what_is_not_committed(story):
    """At no moment more batches than in the commit log, over both lives."""
    played, _ = story
    for pages, before in zip(played.lives, (0, 3), strict=True):
        for page in pages:
            counted = page.value("batches_total", data="true") or 0
            assert before + counted <= page.committed
            assert (page.value("last_committed_batch_id") or 0) < max(page.committed, 1)


def test_counters_only_grow_and_nothing_is_negative(story):
    """Within a life no counter falls or vanishes, and no number is below 0."""
    played, _ = story
    for pages in played.lives:
        assert len(pages) > 20
        before = {}
        for page in pages:
            assert not {key for key, number in page.samples.items() if number < 0}
            now = {key: n for key, n in page.samples.items() if _counts(key[0])}
            assert not {key for key, number in before.items() if now.get(key, -1) < number}
            before = now


def _counts(name):
    return name.endswith(("_total", "_count", "_sum", "_bucket"))


def test_unknown_is_absent(story):
    """What Spark does not say is not 0: the file sink's rows; the state before the first batch."""
    played, _ = story
    for pages in played.lives:
        for page in pages:
            assert page.value("output_rows_total") is None
            assert page.value("source_backlog_rows", source="0-file") is None
            assert page.value("watermark_timestamp_seconds") is None
            if not page.value("batches_total", data="true"):
                assert page.value("last_committed_batch_id") is None
                assert page.value("state_rows", operator=OPERATOR) is None
                assert page.value("freshness_lag_seconds") is None or page.states == {"idle"}


def test_verdict_is_never_wrong(story):
    """No alarm for a batch that is tried again; failed only from the failure to the next start."""
    played, _ = story
    first, second = played.lives
    assert _states(first) == ["starting", "running"]
    assert _states(second) == ["starting", "running", "failed", "starting", "running"]
    assert played.retried.states == {"running"}
    (failure,) = played.job.told("failure")
    restart = played.job.told("run")[-1]
    failed = [page.at for page in second if page.states == {"failed"}]
    assert failure["at"] - 2 < failed[0]
    assert failed[-1] < restart["at"] + 1  # the page follows an event within moments
    assert _failures(played.broken) == 1
    for page in (*first, *second):
        assert not [key for key, n in page.samples.items() if "checkpoint_findings" in key[0] and n]


def _states(pages):
    """The verdicts in order; a query that waits is as well as one that works."""
    found = []
    for page in pages:
        assert len(page.states) <= 1
        for state in page.states:
            told = "running" if state == "idle" else state
            found += [told] if found[-1:] != [told] else []
    return found


def test_agent_missed_nothing_and_stumbled_over_nothing(story):
    """Every event once, by the fast way; no error of any part."""
    played, _ = story
    for pages in played.lives:
        last = pages[-1]
        assert last.agent("agent_missed_batches_total") == 0
        assert last.agent("agent_fallback_events_total") == 0
        assert last.agent("agent_bus_dropped_events_total") == 0
        assert last.agent("agent_events_total", kind="duplicate") == 0
        assert last.agent("agent_events_total", kind="progress") == 3
        assert last.agent("agent_spans_total", outcome="failed") == 0
        errors = {k: n for k, n in last.samples.items() if k[0].endswith("agent_errors_total")}
        assert not any(errors.values()), errors


def test_first_life_is_in_the_trace_store(story):
    """A first start, and three batches that ended well; the retried one is no error."""
    played, store = story
    run_id = played.job.told("run")[0]["run_id"]
    start = _start(store, run_id)
    assert start["tags"][f"{P}start.kind"] == "first"
    assert start["tags"][f"{P}start.batch.id"] == 0
    for batch in range(3):
        root = _batch(store, run_id, batch)
        assert root["tags"][f"{P}batch.replayed"] is False
        assert root["tags"][f"{P}rows.input"] == len(played.job.truth.input_ids(batch))
        assert "error" not in root["tags"]
        assert not root["logs"]
    assert not store.trace(ids_of_batch(run_id, HELD_DRIVER).trace_id)


def test_recovery_of_the_killed_driver_is_in_the_trace_store(story):
    """A restart that resumed with the batch that was planned; how long it took is not known."""
    played, store = story
    run_id = played.job.told("run")[1]["run_id"]
    start = _start(store, run_id)
    assert start["tags"][f"{P}start.kind"] == "restart"
    assert start["tags"][f"{P}start.outcome"] == "committed"
    assert start["tags"][f"{P}start.batch.id"] == HELD_DRIVER
    assert start["tags"][f"{P}start.replayed"] is True
    assert not {f"{P}start.gap", f"{P}start.last_outcome", "error"} & set(start["tags"])
    tags = {tag["key"]: tag["value"] for tag in start["process"]["tags"]}
    assert start["process"]["serviceName"] == "shop"
    assert tags["service.instance.id"] == played.job.told("application")[1]["id"]
    root = _batch(store, run_id, HELD_DRIVER)
    assert root["tags"][f"{P}batch.replayed"] is True
    assert root["tags"][f"{P}rows.input"] == len(played.job.truth.input_ids(HELD_DRIVER))
    assert start["spanID"] in {reference["spanID"] for reference in root["references"]}


def test_failure_and_restart_are_in_the_trace_store(story):
    """The batch with its error; then a restart with its gap that leads to it."""
    played, store = story
    _, before, after = (run["run_id"] for run in played.job.told("run"))
    failed = _batch(store, before, BROKEN)
    assert failed["tags"]["otel.status_code"] == "ERROR"
    assert failed["tags"]["error.type"]
    assert f"{P}batch.replayed" not in failed["tags"]
    (event,) = failed["logs"]
    fields = {field["key"]: field["value"] for field in event["fields"]}
    assert "broken as wished" in fields["exception.stacktrace"]
    start = _start(store, after)
    assert start["tags"][f"{P}start.kind"] == "restart"
    assert start["tags"][f"{P}start.last_outcome"] == "failed"
    assert start["tags"][f"{P}start.batch.id"] == BROKEN
    assert start["tags"][f"{P}start.replayed"] is True
    gap = played.job.told("run")[2]["at"] - played.job.told("failure")[0]["at"]
    assert start["tags"][f"{P}start.gap"] == pytest.approx(gap, abs=2)
    assert failed["spanID"] in {reference["spanID"] for reference in start["references"]}
    assert _batch(store, after, BROKEN)["tags"][f"{P}batch.replayed"] is True


def _start(store, run_id):
    """The one span of a start."""
    (span,) = store.trace(f"{span_ids.trace_id(run_id, 'start'):032x}")
    assert span["operationName"] == "start orders"
    return span


def _batch(store, run_id, batch):
    """The root of a batch's trace."""
    spans = store.trace(ids_of_batch(run_id, batch).trace_id)
    (root,) = [span for span in spans if span["operationName"] == "batch orders"]
    return root
