"""The evidence bundle, and the flight recorder that feeds it."""

import json
import os
import socket
import threading

import pytest
from stage import Life, feed

from streamgauge.cli import main
from streamgauge.exporters.recorder import MOST_FILES, FlightRecorder


def test_recorder_keeps_the_last_events_masked_and_private(agent, tmp_path):
    """A bounded file a query, for its owner only, without secrets."""
    folder = tmp_path / "flight"
    mine = agent(flight_recorder_dir=str(folder))
    life = Life("orders")
    feed(mine, life.started(), *(life.progress() for _ in range(500)))
    feed(mine, life.terminated("java.sql.SQLException: password=hunter2"))
    (path,) = folder.iterdir()
    lines = path.read_text().splitlines()
    assert 200 <= len(lines) <= 400
    assert json.loads(lines[-2])["progress"]["batchId"] == 499
    assert "hunter2" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not mine.stats.of("errors")


def test_name_of_a_query_cant_leave_the_folder(agent, tmp_path):
    """Slashes and dots in a name are only letters in a file's name."""
    folder = tmp_path / "flight"
    mine = agent(flight_recorder_dir=str(folder))
    life = Life("../../etc/passwd")
    feed(mine, life.started())
    assert [p.parent for p in tmp_path.rglob("*.jsonl")] == [folder]


def test_recorder_writes_through_no_link(agent, tmp_path):
    """A link that somebody planted leads nowhere, and the failure is counted."""
    folder, victim = tmp_path / "flight", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("mine\n")
    life = Life("orders")
    (folder / f"orders-{life.query_id[:8]}.jsonl").symlink_to(victim)
    mine = agent(flight_recorder_dir=str(folder))
    feed(mine, life.started())
    assert victim.read_text() == "mine\n"
    assert mine.stats.of("errors") == {"recorder": 1}


def test_recorder_closes_a_file_that_was_open_to_all(agent, tmp_path):
    """An old file's mode is mended; the user's own folder keeps its mode, and other files theirs."""
    folder = tmp_path / "flight"
    folder.mkdir()
    folder.chmod(0o755)
    life = Life("orders")
    path = folder / f"orders-{life.query_id[:8]}.jsonl"
    path.touch()
    path.chmod(0o644)
    feed(agent(flight_recorder_dir=str(folder)), life.started())
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o755


def test_recorder_keeps_a_bounded_number_of_files(tmp_path):
    """Those that wrote last longest ago go; what is not the recorder's stays."""
    (tmp_path / "traces.jsonl").touch()
    recorder = FlightRecorder(str(tmp_path))
    lives = [Life("throwaway") for _ in range(MOST_FILES + 20)]
    for at, life in enumerate(lives):
        recorder.record("throwaway", life.query_id, life.started())
        path = tmp_path / f"throwaway-{life.query_id[:8]}.jsonl"
        os.utime(path, (at, at))
    kept = {path.name for path in tmp_path.iterdir()}
    newest = {f"throwaway-{life.query_id[:8]}.jsonl" for life in lives[-MOST_FILES:]}
    assert kept == newest | {"traces.jsonl"}
    assert len(recorder._lines) == MOST_FILES


def test_unwritable_recorder_is_counted(agent, tmp_path):
    """And nothing else happens."""
    (tmp_path / "file").write_text("")
    mine = agent(flight_recorder_dir=str(tmp_path / "file"))
    life = Life()
    feed(mine, life.started(), life.progress())
    assert mine.stats.of("errors") == {"recorder": 2}
    assert mine.stats.of("events") == {"started": 1, "progress": 1}


def test_bundle_of_a_running_query(agent, tmp_path, capsys):
    """Metrics and events of one query of many, as a page and as JSON."""
    mine = agent(metrics_address="127.0.0.1:0", flight_recorder_dir=str(tmp_path / "flight"))
    life, other = Life("orders"), Life("other")
    feed(mine, life.started(), life.progress(), other.started())
    (events,) = (tmp_path / "flight").glob("orders-*.jsonl")
    url = f"{mine.address}/metrics"
    command = ["evidence", "--url", url, "--query", "orders", "--events", str(events)]
    assert main([*command, "--json"]) == 0
    bundle = json.loads(capsys.readouterr().out)
    assert bundle["identity"]["query_id"] == life.query_id
    assert bundle["query"] == "orders"
    assert [e["progress"]["batchId"] for e in bundle["events"] if "progress" in e] == [0]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "# Evidence: orders" in (tmp_path / "out" / "evidence.md").read_text()


def test_bundle_is_private_also_where_one_was(tmp_path, capsys):
    """An old bundle's mode is mended; a link or a file in the way is status 2."""
    events = tmp_path / "events.jsonl"
    events.write_text("{}\n")
    command = ["evidence", "--events", str(events), "--out"]
    old = tmp_path / "out" / "evidence.json"
    old.parent.mkdir()
    old.touch()
    old.chmod(0o644)
    assert main([*command, str(old.parent)]) == 0
    assert old.stat().st_mode & 0o777 == 0o600
    old.unlink()
    old.symlink_to(events)
    assert main([*command, str(old.parent)]) == 2
    assert events.read_text() == "{}\n"
    assert main([*command, str(events)]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_what_cant_be_had_is_named(capsys):
    """Status 2, and one sentence."""
    assert main(["evidence"]) == 2
    assert main(["evidence", "--url", "http://127.0.0.1:9/metrics"]) == 2
    assert main(["evidence", "--url", "file:///etc/passwd"]) == 2
    assert main(["evidence", "--events", "nowhere.jsonl"]) == 2
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["evidence", "--url", "http://u:hunter2@127.0.0.1:1/metrics"],
        ["evidence", "--url", "http://u:hunter2@gw/metrics"],
        ["evidence", "--url", "ftp://u:hunter2@gw/metrics"],
        ["evidence", "--checkpoint", "s3zz://AKIA:hunter2@b/x"],
        ["checkpoint", "restart", ".", "--running", "http://u:hunter2@gw/metrics"],
    ],
)
def test_complaint_shows_no_password(arguments, capsys):
    """Of an address that we were given, and can't use."""
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("streamgauge")
    assert "hunter2" not in told
    assert "a bug" not in told


def test_page_that_speaks_no_http_is_named(capsys):
    """Status 2, and one sentence."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as client:
                client.recv(1000)
                client.sendall(b"hello\r\n\r\n")

        speaker = threading.Thread(target=answer)
        speaker.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/metrics"
        assert main(["evidence", "--url", url]) == 2
        speaker.join()
    assert "does not answer" in capsys.readouterr().err


def test_fault_of_ours_is_one_masked_line(capsys, monkeypatch):
    """Status 2 and no traceback, which would show what was on the way."""

    def fail(_):
        raise RuntimeError("boom: password=hunter2")

    monkeypatch.setattr("streamgauge.evidence.gather", fail)
    assert main(["evidence", "--url", "http://127.0.0.1:9/metrics"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "RuntimeError: boom: password=***" in line
