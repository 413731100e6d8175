"""`streamgauge demo`: what it promises is on the screen, and Ctrl-C leaves nothing behind."""

import os
import pty
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from browser import browse
from stage import page, value, wait_for

TOOL = str(Path(sys.executable).parent / "streamgauge")
QUERIES = ("clicks", "late-files", "payments", "sessions")


class Screen:
    """The demo on a terminal of its own, with a keyboard."""

    def __init__(self, folder, *arguments):
        command = [TOOL, "demo", "--metrics-address", "127.0.0.1:0", *arguments]
        env = {
            **os.environ,
            "TMPDIR": str(folder),
            "TERM": "xterm",
            "COLUMNS": "160",
            "LINES": "50",
        }
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.execvpe(command[0], command, env)  # noqa: S606 - the real one
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                self.text += os.read(self._terminal, 65536).decode(errors="replace")
            except OSError:  # the other side is gone
                return

    def press(self, key):
        os.write(self._terminal, key)

    def left(self, seconds=30):
        """The exit status, once it has ended."""
        found = []

        def ended():
            found[:] = os.waitpid(self.pid, os.WNOHANG)
            return found[0]

        wait_for(ended, seconds, "the end of the demo")
        return os.waitstatus_to_exitcode(found[1])


def _processes(session):
    """The processes of a terminal's session that are alive: `ps`, in a few lines."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.timeout(240)
def test_live_table_moves_and_ctrl_c_leaves_nothing(tmp_path):
    """All four queries in a table that redraws itself; no stack trace, no JVM, no file afterwards."""
    screen = Screen(tmp_path, "--seconds", "0")

    def moves():
        ages = set(re.findall(r"streamgauge · (\d+) s", screen.text))
        return len(ages) >= 3 and all(name in screen.text for name in QUERIES)

    wait_for(moves, 150, "a table that moves")
    assert re.search(r"http://127\.0\.0\.1:\d+/metrics", screen.text)
    assert len(_processes(screen.pid)) >= 2  # the JVM is one of them
    screen.press(b"\x03")
    status = screen.left()
    assert status == 0, screen.text[-3000:]
    assert "Traceback" not in screen.text
    wait_for(lambda: not _processes(screen.pid), 10, "the end of every process")
    assert not list(tmp_path.glob("streamgauge-demo-*"))


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_whole_story_on_the_screen_and_on_the_live_page(tmp_path):
    """One hangs, is stalled while it hangs, and recovers; one fails and is restarted; one idles."""
    log = tmp_path / "out"
    command = [TOOL, "demo", "--plain", "--seconds", "0", "--metrics-address", "127.0.0.1:0"]
    with log.open("wb") as out:
        demo = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for(lambda: re.search(r"clicks +stalled", log.read_text()), 240, "a stalled query")
        address = re.search(r"(http://\S+?)/metrics", log.read_text())[1]
        dom = browse(address, tmp_path)
        wait_for(lambda: "works again" in log.read_text(), 120, "the end of the hang")
        told = log.read_text().index("works again")
        wait_for(lambda: re.search(r"clicks +running", log.read_text()[told:]), 60, "running")
        with urllib.request.urlopen(f"{address}/metrics", timeout=20) as answer:
            samples = page(answer.read().decode())
    finally:
        demo.terminate()
        demo.wait(60)
    text = log.read_text()
    assert re.search(r"late-files +idle", text)
    failed = {("query", "payments"), ("outcome", "failed")}
    assert sum(n for (_, labels), n in samples.items() if failed <= labels) >= 1
    assert value(samples, "query_starts_total", query="payments") >= 2
    assert value(samples, "query_info", query="sessions", state_provider="rocksdb") == 1
    assert value(samples, "watermark_timestamp_seconds", query="sessions") > 0
    assert "hunter2" not in text
    assert "Traceback" not in text
    for query in QUERIES:
        assert query in dom
    assert "stalled" in dom
    assert "hunter2" not in dom
    assert dom.count("<rect") >= 50
