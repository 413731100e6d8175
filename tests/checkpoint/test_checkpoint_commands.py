"""The command line: text and JSON, exit status, masked secrets, nothing written."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest
from recorded_checkpoints import unpack

import streamgauge.checkpoint
from streamgauge.checkpoint.__main__ import main
from streamgauge.checkpoint.evidence.bundle import build_evidence
from streamgauge.checkpoint.preflight_check.description import Description, dump_description
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.history import make_timeline
from streamgauge.checkpoint.reader.report import make_report
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.render.evidence_text import dump_evidence
from streamgauge.checkpoint.render.report_text import render_report
from streamgauge.checkpoint.render.wording import mask_lines, to_json

for _module in walk_packages(streamgauge.checkpoint.__path__, "streamgauge.checkpoint."):
    import_module(
        _module.name
    )  # a command imports late; the bytecode that Python writes is not ours
_WATCHED: list[tuple[str, tuple]] = []
_WATCHING = [False]


def _watch(event: str, args: tuple) -> None:
    if _WATCHING[0] and (
        event == "open"
        or event.startswith(("os.mkdir", "os.re", "os.rmdir", "os.trunc", "os.link"))
    ):
        _WATCHED.append((event, args))


sys.addaudithook(_watch)


@pytest.fixture
def checkpoint(tmp_path):
    """A whole checkpoint of an aggregation, as a directory."""
    return unpack("4.3.0/agg-rocksdb", tmp_path / "orders")


def run(*arguments):
    """Run a command with every opened file watched; its status."""
    _WATCHED.clear()
    _WATCHING[0] = True
    try:
        return main([str(each) for each in arguments])
    finally:
        _WATCHING[0] = False


def test_show_tells_all_for_people_and_programs(checkpoint, capsys):
    """Identity, batches, sources, state, timeline, settings; the same in JSON."""
    assert run("show", checkpoint) == 0
    text = capsys.readouterr().out
    for words in (
        "query id",
        "batch 3",
        "●",
        "stateStoreSave",
        "RocksDBStateStoreProvider",
        "shuffle.partitions = 2",
    ):
        assert words in text
    assert run("show", checkpoint, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["last_planned"], report["last_committed"], report["written_by"]) == (3, 3, "4.3")
    assert report["operators"][0]["versions"] == [1, 4]


def test_show_tells_the_last_batches_one_by_one(tmp_path, capsys):
    """With `--batches`: when each was planned and committed, its watermark, how far it read; in JSON too."""
    joined = unpack("4.3.0/join-hdfs", tmp_path / "joined")
    (joined / "commits" / "3").unlink()
    assert run("show", joined, "--batches", "2") == 0
    text = capsys.readouterr().out
    table = text[text.index("batch  planned") : text.index("\nsources")].splitlines()
    assert [line.split()[0] for line in table] == ["batch", "2", "0", "1", "3", "0", "1"]
    assert table[1].endswith("UTC  2025-12-31 23:01:00 UTC")
    assert table[4].split("  ")[-2:] == ["", "2025-12-31 23:02:00 UTC"]
    assert "not yet" in table[4]
    assert table[5].strip() == '0  file  to {"logOffset":3}'
    assert run("show", joined, "--batches", "99", "--json") == 0
    told = json.loads(capsys.readouterr().out)["batches"]
    assert [(each["batch"], each["word"]) for each in told] == [
        *((batch, "done") for batch in range(3)),
        (3, "planned"),
    ]
    assert told[3]["sources"][1] == {
        "source": "1",
        "kind": "file",
        "end": {"logOffset": 3},
        "rows": None,
    }
    assert run("show", joined) == 0
    assert "not yet" not in capsys.readouterr().out


def test_batches_count_their_rows_mask_secrets_and_stay_short():
    """Rows where the batch before is kept; an offset of any length is cut, a secret in it masked."""
    files = {"metadata": '{"id":"a"}', "commits/3": "v1\n{}"}
    for batch in (1, 2, 3, 7):
        ends = {str(partition): batch * 10 for partition in range(50)}
        mine = json.dumps({"n": "x" * 90, "url": "s3://key:verysecret@lake"})
        files[f"offsets/{batch}"] = f'v1\n{{"conf":{{}}}}\n{json.dumps({"orders": ends})}\n{mine}'
    report = make_report(read_checkpoint(MemoryStore(files)), batches=3)
    told = [(each.batch, each.word, each.sources[0].rows) for each in report.batches]
    assert told == [(2, "no commit", 500), (3, "done", 500), (7, "planned", None)]
    text = mask_lines(render_report(report))
    table = text[text.index("batch  planned") : text.index("\nsources")]
    assert max(len(line) for line in table.splitlines()) < 160
    assert "verys" not in text + to_json(report)


@pytest.mark.parametrize("number", ["-1", "many", ""])
def test_number_of_batches_is_a_number(checkpoint, number, capsys):
    """Told in one line what was wrong."""
    with pytest.raises(SystemExit):
        run("show", checkpoint, f"--batches={number}")
    assert "is not a number of batches" in capsys.readouterr().err


def test_restart_exit_status_follows_the_verdict(checkpoint, capsys):
    """0 safe, 1 harm, 2 unknown."""
    assert run("restart", checkpoint) == 0
    (checkpoint / "commits" / "3").unlink()
    assert run("restart", checkpoint) == 2
    assert run("restart", checkpoint, "--sink", "kafka", "--spark", "3.5.9") == 1
    assert "safe with duplicates" in capsys.readouterr().out
    (checkpoint / "metadata").write_text("")
    assert run("restart", checkpoint, "--sink", "delta", "--json") == 1
    assert json.loads(capsys.readouterr().out)["failure"]["file"] == "metadata"


def test_restart_takes_settings_and_the_sinks_own_log(checkpoint, tmp_path, capsys):
    """`--conf` is the session's; `--output` is the file sink's directory."""
    log = tmp_path / "out" / "_spark_metadata"
    log.mkdir(parents=True)
    (log / "9.compact").write_text("v1")
    assert (
        run(
            "restart",
            checkpoint,
            "--output",
            tmp_path / "out",
            "--conf",
            "spark.sql.shuffle.partitions=7",
        )
        == 1
    )
    text = capsys.readouterr().out
    assert "loses data" in text
    assert "7 → 2" in text


@pytest.mark.parametrize("arguments", [["--spark", "1.6"], ["--conf", "nothing"]])
def test_wrong_arguments_are_told_the_right_ones(checkpoint, arguments, capsys):
    """Argparse's own exit, with the known values."""
    with pytest.raises(SystemExit):
        run("restart", checkpoint, *arguments)
    assert arguments[1] in capsys.readouterr().err


def test_plan_prints_and_says_no(checkpoint, capsys):
    """A goal that is not possible is status 1; without a goal all are listed."""
    assert run("plan", checkpoint) == 0
    assert run("plan", checkpoint, "--goal", "reset", "--sink", "file") == 0
    assert "Clear the output" in capsys.readouterr().out
    assert (
        run("plan", checkpoint, "--goal", "replay", "--first-batch", "90", "--last-batch", "91")
        == 1
    )


def test_preflight_reads_a_description(checkpoint, tmp_path, capsys):
    """The JSON of describe() against the checkpoint."""
    plan = tmp_path / "plan.json"
    plan.write_bytes(dump_description(Description(sources=[], operators=[])))
    assert run("preflight", checkpoint, "--plan", plan) == 1
    assert "number of sources" in capsys.readouterr().out
    assert run("preflight", checkpoint, "--plan", tmp_path / "nowhere.json") == 2


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("kakfa", "kafka"),
        ("detla", "delta"),
        ("Foreachbach", "foreachBatch"),
        ("parqet", "parquet"),
    ],
)
def test_typo_in_a_sinks_name_is_told(typo, meant, checkpoint, capsys):
    """Status 2, and the name that was meant."""
    with pytest.raises(SystemExit) as ended:
        run("restart", checkpoint, "--sink", typo)
    assert ended.value.code == 2
    assert f"there is no sink {typo!r}; did you mean {meant!r}? known: " in capsys.readouterr().err


@pytest.mark.parametrize("sink", ["hudi", "MyTable", "ForeachBatch", "ORC"])
def test_sink_that_is_no_typo_is_taken(sink, checkpoint):
    """A sink of the user's own is one whose replay is unknown."""
    assert run("restart", checkpoint, "--sink", sink) in {0, 1, 2}


def test_lint_and_diff(checkpoint, tmp_path, capsys):
    """Two checkpoints with one id are a copy; a diff of a thing with itself is empty."""
    other = unpack("4.3.0/agg-rocksdb", tmp_path / "copy")
    assert run("lint", checkpoint, other) == 1
    assert "copied" in capsys.readouterr().out
    assert run("diff", checkpoint, other) == 0
    assert "nothing moved" in capsys.readouterr().out
    stranger = unpack("4.3.0/plain", tmp_path / "plain")
    assert run("diff", checkpoint, stranger, "--json") == 1


def test_place_that_is_not_there_is_status_2(tmp_path, capsys):
    """Could not look: one line on stderr, nothing on stdout."""
    for command in ("show", "restart", "plan", "lint"):
        assert run(command, tmp_path / "nowhere") == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("no such directory") == 4


def test_nothing_is_written_and_nothing_outside_is_opened(checkpoint, capsys):
    """Every file that the commands open is inside the checkpoint and opened for reading."""
    before = {path: path.stat().st_mtime_ns for path in checkpoint.rglob("*")}
    for command in ("show", "restart", "plan", "lint"):
        run(command, checkpoint)
        opened = [
            args for event, args in _WATCHED if event == "open" and str(args[0]).startswith("/")
        ]
        outside = [
            args[0]
            for args in opened
            if isinstance(args[0], str)
            and not args[0].startswith(str(checkpoint))
            and "python" not in args[0]
            and not args[0].endswith((".py", ".pyc"))
        ]
        assert outside == []
        assert [
            args
            for _, args in _WATCHED
            if len(args) > 2
            and isinstance(args[2], int)
            and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        ] == []
        assert [event for event, _ in _WATCHED if event != "open"] == []
    assert {path: path.stat().st_mtime_ns for path in checkpoint.rglob("*")} == before
    capsys.readouterr()


def test_secrets_in_paths_are_masked(tmp_path, capsys):
    """A path with credentials in it is shown without them."""
    folder = unpack("4.3.0/plain", tmp_path / "orders")
    (folder / "commits" / "3").unlink()
    log = folder / "sources" / "0" / "3"
    log.write_text(
        log.read_text().replace("/data/", "s3a://AKIAABCDEFGHIJKLMNOP:verysecret@bucket/")
    )
    run("restart", folder, "--sink", "file")
    run("restart", folder, "--sink", "file", "--json")
    assert "verysecret" not in capsys.readouterr().out


def test_json_masks_what_a_key_calls_secret(tmp_path, capsys):
    """Offsets, settings and numbers: a value that looks like any other, under a name that tells."""
    folder = unpack("4.3.0/plain", tmp_path / "orders")
    log = folder / "offsets" / "3"
    version, about, _ = log.read_text().split("\n")
    conf = json.loads(about)
    conf["conf"]["spark.hadoop.fs.s3a.secret.key"] = "hunter2"
    offset = json.dumps({"continuation_token": "hunter2tok", "pin.password": 20200202})
    log.write_text("\n".join((version, json.dumps(conf), offset)))
    for command in (["show", folder], ["restart", folder], ["diff", folder, folder]):
        run(*command, "--json")
        told = capsys.readouterr().out
        assert "***" in told or command[0] == "diff", command
        assert "hunter2" not in told, command
        assert "20200202" not in told, command
    report = make_report(read_checkpoint(folder))
    text = dump_evidence(build_evidence(checkpoint=report))
    assert "***" in text
    assert "hunter2" not in text


def test_timeline_shows_planned_committed_and_missing(checkpoint):
    """One word a batch: done, planned, no commit, no offsets, missing."""
    for name in ("commits/3", "commits/1", "offsets/1", "offsets/2"):
        (checkpoint / name).unlink()
    (checkpoint / "offsets" / "5").write_text("v1")
    timeline = make_timeline(read_checkpoint(checkpoint))
    assert timeline == [
        (0, "done"),
        (1, "missing"),
        (2, "no offsets"),
        (3, "planned"),
        (4, "missing"),
        (5, "planned"),
    ]


def test_sink_is_taken_from_the_running_query(agent, tmp_path, capsys):
    """`--running URL` asks the agent; a page that does not know the query is status 2."""
    from stage import Life, feed

    from streamgauge.cli import main

    mine = agent(metrics_address="127.0.0.1:0")
    life = Life()
    feed(mine, life.started(), life.progress())
    for name, text in (
        ("metadata", f'{{"id":"{life.query_id}"}}'),
        ("offsets/0", 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n7'),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    url = f"{mine.address}/metrics"
    main(["checkpoint", "restart", str(tmp_path), "--running", url])
    assert "foreachBatch" in capsys.readouterr().out
    (tmp_path / "metadata").write_text('{"id":"00000000-0000-0000-0000-000000000000"}')
    assert main(["checkpoint", "restart", str(tmp_path), "--running", url]) == 2
    assert "no query there" in capsys.readouterr().err
