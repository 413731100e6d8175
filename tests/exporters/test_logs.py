"""Log lines: JSON, levels, masked, unforgeable, and the user's logging is left alone."""

import io
import json
import logging
import threading
import time

import msgspec
import structlog
from stage import Life, apply_to, feed
from theatre import ids_of_batch

from streamgauge.exporters.logs import LogExporter, make_logger
from streamgauge.listener.inbox import OBSERVATION, Item
from streamgauge.model.application import Application
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import Gone
from streamgauge.model.update import TraceIds, Update
from streamgauge.model.verdict import Verdict, judge
from streamgauge.throttle import Throttle


def _lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_life_of_a_query_in_lines(agent):
    """Start, failure and verdicts at info and above; a batch only at debug."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("info", stream))
    life = Life()
    feed(mine, life.started(), life.progress(), life.terminated("a.BadError: boom\n\tat x", "BAD"))
    lines = _lines(stream)
    assert [line["event"] for line in lines] == ["query started", "query failed", "verdict"]
    assert lines[1]["level"] == "error"
    assert lines[1]["error_class"] == "BAD"
    assert lines[2]["state"] == "failed"
    assert all(line["query"] == "orders" and line["app"] == "shop" for line in lines)


def test_failed_query_that_makes_room_is_named(agent):
    """Its page must not go without a word."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("warning", stream), series_limit=200)
    for name in ("first", "second", "third"):
        life = Life(name)
        feed(mine, life.started(), life.terminated("E: x"))
    mine.flush()
    (gone,) = [line for line in _lines(stream) if "no longer shown" in line["event"]]
    assert gone["query"] == "first"


def test_batch_is_a_debug_line(agent):
    """With its id, rows and phases."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("debug", stream))
    life = Life()
    feed(mine, life.started(), life.progress())
    (batch,) = [line for line in _lines(stream) if line["event"] == "batch"]
    assert (batch["batch_id"], batch["input_rows"], batch["seconds"]) == (0, 10, 0.5)


def test_secrets_and_control_characters_dont_get_out(agent):
    """Whatever a name, a path or an exception holds."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("debug", stream))
    life = Life('x"\n{"event":"forged"}\x1b[31m password=hunter2')
    feed(mine, life.started(), life.terminated("E: jdbc:x://u:hunter2@h\nforged\x1b[0m"))
    text = stream.getvalue()
    assert "hunter2" not in text
    assert "\x1b" not in text
    assert not [line for line in _lines(stream) if line["event"] == "forged"]


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self):
        return True


def test_terminal_gets_text_that_cant_be_coloured_by_a_name():
    """On a terminal the line is for eyes; a name's escape codes are not obeyed."""
    stream = Terminal()
    make_logger("info", stream).info("query started", query="a\x1b]0;owned\x07\nb")
    assert "owned" in stream.getvalue()
    assert "\x1b]0" not in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


class OutStream(io.StringIO):
    """What a notebook puts in the place of standard error: no terminal, and people read it."""

    __module__ = "ipykernel.iostream"


def test_notebook_gets_text_without_colours():
    """One line per event that a person can read, whatever a name tries; no JSON, no escape codes."""
    stream = OutStream()
    make_logger("info", stream).info("query started", query="a\x1b]0;owned\x07\nb")
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "query started" in text
    assert not text.startswith("{")


FORGED = "2026-11-18T00:00:00Z [info     ] forged"


def test_exception_forges_no_line_on_a_terminal(agent):
    """The console prints a stack as it is: each of its lines stands back from where ours begin."""
    stream = Terminal()
    mine = agent(logger=make_logger("info", stream))
    life = Life()
    hidden = f"pass%2577ord=hunter2%250A{FORGED}"
    exception = f"E: x\n{FORGED}\n\n{FORGED}\n\tat x\r{FORGED}\x85{FORGED}\u2028{FORGED}\n {FORGED}\n{hidden}"
    feed(mine, life.started(), life.terminated(exception))
    lines = stream.getvalue().splitlines()
    assert sum("forged" in line for line in lines) > 3
    assert not [line for line in lines if line.startswith(("2026-11-18", " 2026"))]
    assert sum(line.startswith("\x1b[2m20") for line in lines) == 3  # started, failed, verdict


def test_nothing_forges_a_line_on_a_terminal():
    """Neither do an event of several lines, a stack of one, or the traceback of a failure of ours."""
    stream = Terminal()
    logger = make_logger("info", stream)
    lines = f"a\n{FORGED}"
    logger.info(lines, stack=FORGED, other=lines)
    logger.error("failed", exc_info=ValueError(lines))
    lines = stream.getvalue().splitlines()
    assert sum("forged" in line for line in lines) >= 3
    assert not [line for line in lines if line.startswith("2026-11-18")]


def test_exception_forges_no_line_on_a_console_of_the_users(agent):
    """It has no masking of ours in its chain; the exception was masked and set back before."""
    stream = io.StringIO()
    console = structlog.dev.ConsoleRenderer(colors=False)
    theirs = structlog.wrap_logger(structlog.PrintLogger(stream), processors=[console])
    life = Life()
    feed(agent(logger=theirs), life.started(), life.terminated(f"E: x\n{FORGED}\n\tat x"))
    assert f"\n    {FORGED}\n\tat x" in stream.getvalue()


def test_users_logging_is_not_touched(agent):
    """Neither the standard library's nor structlog's configuration changes."""
    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    configured = structlog.is_configured()
    mine = agent(logger=make_logger("info", io.StringIO()))
    feed(mine, Life().started())
    assert list(logging.getLogger().handlers) == handlers
    assert logging.getLogger().level == level
    assert structlog.is_configured() == configured


def test_undecodable_event_is_logged_once_a_minute(agent):
    """A thousand broken events are one line, a thousand counts, and no loss."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("info", stream))
    life = Life()
    feed(mine, *['x{"password": "hunter2"'] * 1000, life.started())
    assert mine.stats.of("errors") == {"decoder": 1000}
    assert mine.stats.of("events") == {"started": 1}
    complaints = [line for line in _lines(stream) if line.get("part") == "decoder"]
    assert len(complaints) == 1
    assert "hunter2" not in stream.getvalue()


def test_undecodable_event_is_shown_by_its_first_200_characters(agent):
    """All of them, whatever else the line says."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("info", stream))
    text = 'x{"progress": ' + "y" * 5000
    feed(mine, text)
    (line,) = [line for line in _lines(stream) if line.get("part") == "decoder"]
    assert text[:199] in line["error"]


def test_long_line_is_told_to_its_end():
    """A list of the allowed settings helps only when it is whole; it stays one line, and masked."""
    stream = io.StringIO()
    allowed = "no such setting; allowed: " + ", ".join(f"setting_{n}" for n in range(100))
    hidden = "pass%77ord=hunter2%0Aforged"
    make_logger("info", stream).info(allowed, hint=f"{allowed} password=hunter2", other=hidden)
    (line,) = _lines(stream)
    assert line["event"] == allowed
    assert line["hint"] == f"{allowed} password=***"
    assert "hunter2" not in stream.getvalue()
    assert "\n" not in line["other"]


def test_run_that_failed_without_a_word_is_logged_as_failed(agent, tmp_path):
    """The watchdog found its exception: the line says so, and names the trace."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("info", stream), traces=str(tmp_path / "t.jsonl"))
    life = Life()
    feed(mine, life.started(), life.progress())
    gone = Gone(
        query_id=life.query_id,
        run_id=life.run_id,
        at=time.time(),
        why="its end was not told",
        exception="a.BadError: boom",
        error_class="BAD",
    )
    mine.inbox.put(Item(OBSERVATION, gone, time.time()))
    assert mine.flush()
    failed, verdict = _lines(stream)[-2:]
    assert (failed["event"], failed["level"]) == ("query failed", "error")
    assert (failed["error_class"], failed["error"]) == ("BAD", "a.BadError: boom")
    assert failed["why"] == "its end was not told"
    ids = ids_of_batch(life.run_id, 1)
    assert (failed["trace_id"], failed["span_id"]) == ids
    assert (verdict["state"], verdict["trace_id"]) == ("failed", ids.trace_id)


def test_throttle_tells_how_many_were_held_back():
    """The next line after the minute has the number."""
    now = [0.0]
    throttle = Throttle(60, lambda: now[0])
    assert throttle.ask("x") == 0
    assert throttle.ask("x") is None
    assert throttle.ask("x") is None
    now[0] = 61.0
    assert throttle.ask("x") == 2


def test_logger_of_the_users_gets_failures_masked(agent):
    """It has no masking of ours in its chain."""
    stream = io.StringIO()
    theirs = structlog.wrap_logger(structlog.PrintLogger(stream))
    agent(logger=theirs).guard.report_error("part", OSError("http://u:hunter2@h/ is gone"))
    assert "http://u:***@h/ is gone" in stream.getvalue()


def test_throttle_counts_right_whoever_asks():
    """Eight threads, one message: one passes, the others are counted."""
    throttle, passed = Throttle(60), []

    def ask():
        passed.extend(held for _ in range(1000) if (held := throttle.ask("x")) is not None)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed == [0]
    assert throttle._last["x"][1] == 7999


def _export(stream, *updates):
    logs = LogExporter(make_logger("debug", stream), application=lambda: Application(name="shop"))
    for update in updates:
        logs.export(update)
    return _lines(stream)


def test_verdict_that_nothing_caused_is_logged():
    """A worker that hangs is told of from another thread: the verdict alone, with what it was before."""
    fleet, life = Fleet(), Life()
    query = apply_to(fleet, decode(life.started()), 1.0)
    blind = judge(query, 1000.0, worker_seen_at=1.0)
    trace = TraceIds("a" * 32, "b" * 16)
    update = Update(
        at=1000.0,
        cause=None,
        query=query,
        verdict=blind,
        previous=Verdict("running", "x"),
        trace=trace,
    )
    (line,) = _export(io.StringIO(), update)
    assert (line["event"], line["level"], line["app"]) == ("verdict", "warning", "shop")
    assert (line["before"], line["state"], line["reason"]) == ("running", "blind", blind.reason)
    assert (line["run_id"], line["trace_id"]) == (life.run_id, "a" * 32)
    again = msgspec.structs.replace(update, previous=blind)
    assert _export(io.StringIO(), again) == []


def test_late_end_names_its_own_run_and_trace():
    """The verdict beside it is the next run's, and has no trace of the old one."""
    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), 1.0)
    first, late = life.run_id, decode(life.terminated())
    apply_to(fleet, decode(life.started()), 2.0)
    query, trace = apply_to(fleet, late, 3.0), TraceIds("a" * 32, "b" * 16)
    update = Update(at=3.0, cause=late, query=query, verdict=judge(query, 3.0), trace=trace)
    stopped, verdict = _export(io.StringIO(), update)
    assert (stopped["run_id"], stopped["trace_id"]) == (first, "a" * 32)
    assert verdict["run_id"] == life.run_id
    assert "trace_id" not in verdict
