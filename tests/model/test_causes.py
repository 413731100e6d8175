"""What a run failed with: the innermost cause of real exceptions, masked and bounded."""

import json
import time

import pytest
from stage import ROOT, Life, apply_to

from streamgauge.masking import LONGEST_TEXT
from streamgauge.model.causes import condense, find_cause, one_line, shorten
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import Gone
from streamgauge.model.verdict import judge

FAILURES = ROOT / "tests" / "data" / "failures"
FULL = "No space left on device"
BATCH = "FOREACH_BATCH_USER_FUNCTION_ERROR"

REAL = [
    ("4.3.0", "foreachbatch-user", BATCH, "ValueError", "boom in foreachBatch"),
    ("4.3.0", "foreachbatch-dev-full", BATCH, "OSError", f"[Errno 28] {FULL}"),
    ("4.3.0", "foreachbatch-disk-full", BATCH, "IOException", FULL),
    ("4.3.0", "foreachbatch-chained", BATCH, "KeyError", "'missing'"),
    ("4.3.0", "foreachbatch-udf-error", BATCH, "ZeroDivisionError", "integer division"),
    ("4.3.0", "foreachbatch-missing-table", BATCH, "PATH_NOT_FOUND", "Path does not exist"),
    ("4.3.0", "jdbc", BATCH, "SQLException", "Database '/no/such' not found."),
    ("4.3.0", "file-sink-disk-full", "TASK_WRITE_FAILED", "IOException", FULL),
    ("4.3.0", "udf-error", "PYTHON_EXCEPTION", "ZeroDivisionError", "integer division"),
    ("4.3.0", "foreach-user", "PYTHON_EXCEPTION", "ConnectionError", "refused by db:5432"),
    (
        *("4.3.0", "state-missing", "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS"),
        *("FileNotFoundException", "1.delta does not exist"),
    ),
    (
        *("4.3.0", "state-corrupt", "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"),
        *("EOFException", "An error occurred during loading state."),
    ),
    ("4.3.0", "offsets-corrupt", "IllegalStateException", "MALFORMED_LOG_FILE", "from junk."),
    ("3.5.9", "foreachbatch-dev-full", "Py4JException", "OSError", f"[Errno 28] {FULL}"),
    ("3.5.9", "foreachbatch-disk-full", "Py4JException", "IOException", FULL),
    ("3.5.9", "foreachbatch-udf-error", "Py4JException", "ZeroDivisionError", "integer division"),
    ("3.5.9", "file-sink-disk-full", "SparkException", "IOException", FULL),
    ("3.5.9", "udf-error", "SparkException", "ZeroDivisionError", "integer division"),
    (
        *("3.5.9", "source-file-missing", "SparkException"),
        *("SparkFileNotFoundException", "File file:/data/src/1.json does not exist"),
    ),
    ("3.5.9", "state-missing", "SparkException", "FileNotFoundException", "1.delta does not exist"),
    ("3.5.9", "state-corrupt", "SparkException", "EOFException", "Job aborted"),
    ("3.5.9", "raise-error", "SparkException", "RuntimeException", "bad row"),
]


def _end(version, name):
    event = json.loads((FAILURES / version / f"{name}.json").read_text(encoding="utf-8"))
    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), 0.0)
    event |= {"id": life.query_id, "runId": life.run_id}
    return apply_to(fleet, decode(json.dumps(event)), 1.0)


@pytest.mark.parametrize(
    ("version", "name", "outer", "cause", "words"), REAL, ids=[f"{r[0]}-{r[1]}" for r in REAL]
)
def test_innermost_cause_of_real_failures(version, name, outer, cause, words):
    """Both classes are kept, the message is the innermost one's, and the verdict says all three once."""
    query = _end(version, name)
    assert (query.end.error_class, query.end.cause_class) == (outer, cause)
    assert words in query.end.message
    reason = judge(query, 2.0).reason
    assert reason == f"{outer}, caused by {cause}: {query.end.message}"


def test_long_text_keeps_its_causes_and_where_the_batch_ran():
    """Frames go first; the log's stack still ends in what is wrong."""
    end = _end("4.3.0", "foreachbatch-disk-full").end
    text = json.loads((FAILURES / "4.3.0" / "foreachbatch-disk-full.json").read_text())["exception"]
    assert len(text) > LONGEST_TEXT >= len(end.exception)
    assert f"Caused by: java.io.IOException: {FULL}" in end.exception
    assert "runBatch" in end.exception


@pytest.mark.parametrize(
    ("text", "cause", "message"),
    [
        ("java.lang.IllegalStateException: x", None, "x"),
        ("a.B: x\n\tat c\nCaused by: a.B: y\n", None, "y"),
        ("a.B: x\n\tSuppressed: a.C: y\n\t\tat d\n\tCaused by: a.D: z\n", None, "x"),
        ("a.B: x\n\tat c\nCaused by: a.C\n\tat d\n", "C", "x"),
        ("no class here at all, sorry", None, "no class here at all, sorry"),
        ("", None, ""),
        ("\n\n", None, ""),
        (
            (
                "a.B: Return Message: Traceback (most recent call last):\n  File\nKeyError: 'k'\n\n"
                "During handling of the above exception, another exception occurred:\n\n"
                "Traceback (most recent call last):\n  File\nOSError: refused\n\n\tat e"
            ),
            "OSError",
            "refused",
        ),
    ],
)
def test_chains_are_read_as_they_are_meant(text, cause, message):
    """What was suppressed or only being handled is no cause; a cause without words gets the outer ones."""
    found = find_cause(text, "B")
    assert (found.cause_class, found.message) == (cause, message)


def test_run_whose_end_was_not_heard_is_unwrapped_too():
    """What the watchdog finds of a failure goes the same way."""
    fleet, life = Fleet(), Life()
    query = apply_to(fleet, decode(life.started()), 0.0)
    gone = Gone(
        query_id=query.query_id, run_id=query.run_id, at=1.0, why="w", error_class="SparkException",
        exception=f"org.apache.spark.SparkException: x\nCaused by: java.io.IOException: {FULL}",
    )  # fmt: skip
    end = apply_to(fleet, gone, 1.0).end
    assert (end.outcome, end.why, end.cause_class, end.message) == (
        "failed",
        "w",
        "IOException",
        FULL,
    )


def test_secrets_are_masked_wherever_the_cause_is():
    """Also past what was cut from the text of today."""
    frames = "".join(f"\tat com.shop.Writer.write{n}(Writer.java:{n})\n" for n in range(2000))
    text = f"a.B: x\n{frames}Caused by: a.C: jdbc:pg://u:hunter2@db/x password=hunter3\n{frames}"
    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), 0.0)
    end = apply_to(fleet, decode(life.terminated(text)), 1.0).end
    assert end.cause_class == "C"
    assert "hunter" not in end.message + end.exception
    assert "***" in end.message


@pytest.mark.parametrize("cut", range(0, 40, 3))
def test_cut_through_a_secret_leaves_none_of_it(cut):
    """What stands behind a cut is shown from the next cause on only."""
    key = "\n".join(
        ["-----BEGIN PRIVATE KEY-----", *["QUJDREVGR0hJSktM"] * 700, "-----END PRIVATE KEY-----"]
    )
    text = f"a.B: {'x ' * (4096 + cut)}{key}\npassword=QUJDREVG\nCaused by: a.C: y{' z' * 4000}"
    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), 0.0)
    end = apply_to(fleet, decode(life.terminated(text)), 1.0).end
    assert "QUJDREVG" not in end.exception
    assert end.cause_class == "C"


def test_cut_is_in_the_middle():
    """The start says what it is about, the end says why."""
    words = one_line(f"org.x.Failed: writing {'a' * 500}: {FULL}\n  more")
    assert len(words) == 200
    assert words.startswith("org.x.Failed: writing aaa")
    assert " … " in words
    assert words.endswith(f"{FULL} more")
    assert shorten("abc", 3) == "abc"


@pytest.mark.parametrize(
    "text",
    [
        "a" * 3_000_000,
        "\tat x\n" * 500_000,
        "Caused by: " * 200_000,
        "a." * 1_000_000 + ": x",
        "Caused by: a.B: x\n" * 150_000,
        "Traceback (most recent call last):\n" * 80_000,
        "(TID 1) (" * 200_000,
    ],
)
def test_hostile_text_is_cheap(text):
    """Whoever can write the text of an exception must not stop the worker."""
    began = time.perf_counter()
    short = condense(text)
    found = find_cause(short, None)
    assert len(short) <= LONGEST_TEXT + 1
    assert len(found.message) <= 200
    assert len(found.cause_class or "") <= 100
    assert time.perf_counter() - began < 3
    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), 0.0)
    assert apply_to(fleet, decode(life.terminated(text)), 1.0).end.outcome == "failed"


def test_long_run_of_blanks_takes_no_time():
    """A record that is padded with blanks must not hold the interpreter."""
    began = time.process_time()
    found = find_cause("java.lang.RuntimeException: a" + " " * 16_000 + "b SQLSTATE: 42000", None)
    assert found.message.startswith("a")
    assert time.process_time() - began < 1
