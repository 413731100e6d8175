"""What `make stack` does with processes, ports and a service that fails; with small programs in its place."""

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from stage import ROOT, free_port

sys.path.insert(0, str(ROOT / "scripts"))
import stack
import stack_processes
import stack_services
from stack_processes import Running, is_alive, members, remembered
from stack_services import Service

# A server with a child that outlives it if nobody ends it too.
SERVER = """
import http.server, subprocess, sys
subprocess.Popen(["sleep", "600"])
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A stack in a folder of the test's; whatever it starts is ended."""
    real = stack_services.STACK
    for module in (stack, stack_processes, stack_services):
        for name in ("STACK", "LOGS", "WORK", "FAULTS", "TEMPORARY", "HOME", "RECORD"):
            if hasattr(module, name):
                place = getattr(module, name).relative_to(real)
                monkeypatch.setattr(module, name, tmp_path / "stack" / place)
    monkeypatch.setattr(stack, "ROOT", tmp_path)
    monkeypatch.setattr(stack, "_check_programs", lambda: None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    settings = {**stack_services.base_environment(), "TMPDIR": str(tmp_path / "stack" / "tmp")}
    monkeypatch.setattr(stack_processes, "base_environment", lambda: settings)
    yield tmp_path / "stack"
    for one in remembered():
        stack_processes.end(one)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def play(folder, monkeypatch):  # noqa: ARG001 - they start in that folder
    """Puts other services in the place of the stack's."""

    def make(*services):
        monkeypatch.setattr(stack, "services", lambda: list(services))

    return make


def server(name="shop"):
    """A service that answers."""
    port = free_port()
    return Service(name, [sys.executable, "-c", SERVER, str(port)], (port,), "/", seconds=20)


def test_up_twice_then_down(folder, play, capsys):
    """The second `up` starts nothing; `down` ends children too and leaves only the logs."""
    play(server("one"), server("two"))
    assert stack.up() == 0
    assert stack.status() == 0
    first = remembered()
    assert [len(members(one)) for one in first] == [2, 2]
    assert stack.up() == 0
    assert remembered() == first
    pids = [pid for one in first for pid in members(one)]
    assert stack.down() == 0
    assert not [one for one in first if is_alive(one) or members(one)]
    assert not [pid for pid in pids if _runs(pid)]
    assert [place.name for place in folder.iterdir()] == ["logs"]
    assert stack.status() == 1
    assert stack.down() == 0
    assert "The stack was not up" in capsys.readouterr().out


def _runs(pid):
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_one_that_ended_is_named(play, capsys):
    """`up` over a stack with a hole says what is missing and what to do."""
    play(server("one"), server("two"))
    assert stack.up() == 0
    os.kill(remembered()[1].pid, signal.SIGKILL)
    assert stack_processes.wait_until(lambda: not is_alive(remembered()[1]), 10)
    assert stack.up() == 1
    assert "two does not run" in capsys.readouterr().out
    assert stack.down() == 0


def test_taken_port_is_named_before_anything_starts(folder, play, capsys):
    """One sentence: which port, whose it should be, what to do."""
    free, taken = server("one"), server("two")
    play(free, taken)
    with socket.create_server(("127.0.0.1", taken.ports[0])):
        assert stack.up() == 1
    said = capsys.readouterr().out
    assert f"something else listens on {taken.ports[0]} (two); end it" in said
    assert not folder.exists()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit('no disk')", "ended at once"),
        ("print('no disk')\nimport time\ntime.sleep(600)", "is not"),
    ],
)
def test_service_that_fails_is_told_and_all_is_ended(folder, play, capsys, code, why):
    """Its name and the end of its log; what was started before it is ended."""
    bad = Service("bad", [sys.executable, "-uc", code], (free_port(),), "/", seconds=2)
    play(server("good"), bad)
    assert stack.up() == 1
    said = capsys.readouterr().out
    assert f"bad {why}" in said
    assert "| no disk" in said
    assert [place.name for place in folder.iterdir()] == ["logs"]


def test_interrupted_up_ends_what_it_started(play, monkeypatch):
    """Ctrl-C while it waits."""
    play(server())

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(stack, "answers", interrupt)
    started = []
    begin = stack.start
    monkeypatch.setattr(stack, "start", lambda one: started.append(begin(one)) or started[0])
    assert stack.up() == 130
    assert not members(started[0])
    assert not is_alive(started[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_between_start_and_record_loses_nothing(play, monkeypatch, number):
    """A signal that comes before the process is remembered waits until it is."""
    play(server())
    look, started = stack_processes._look, []

    def interrupted(pid):
        if not started:
            started.append(pid)
            signal.raise_signal(number)
        return look(pid)

    monkeypatch.setattr(stack_processes, "_look", interrupted)
    assert stack.up() == 130
    assert not [pid for pid in started if _runs(pid)]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"first": [sys.executable, "-c", "raise SystemExit('no disk')"]}, "| no disk"),
        ({"first": ["./nowhere"]}, "can't be started: "),
        ({"command": ["./nowhere"]}, "can't be started: "),
    ],
)
def test_service_that_can_not_be_started_is_told(folder, play, capsys, changes, why):
    """A step before it that fails, or a program that isn't there, is one sentence and no traceback."""
    play(server("good"), dataclasses.replace(server("bad"), **changes))
    assert stack.up() == 1
    said = capsys.readouterr().out
    assert re.search(r"stack: .*\bbad\b", said)
    assert why in said
    assert [place.name for place in folder.iterdir()] == ["logs"]


def test_step_that_takes_too_long_is_told(play, monkeypatch, capsys):
    """Its deadline ends it, and the sentence names the service."""
    play(dataclasses.replace(server("slow"), first=["sleep", "600"]))
    monkeypatch.setattr(stack_processes, "_SECONDS_FIRST", 0.2)
    assert stack.up() == 1
    assert "the step before slow failed" in capsys.readouterr().out


def test_services_write_into_the_stacks_folder():
    """Home and temporary files, of Java's too, which asks the machine's list of users."""
    given = stack_services.base_environment()
    assert Path(given["HOME"]).parent == Path(given["TMPDIR"]).parent == stack_services.STACK
    for name in ("user.home", "java.io.tmpdir"):
        (place,) = re.findall(rf"-D{name}=(\S+)", given["JAVA_TOOL_OPTIONS"])
        assert Path(place).parent == stack_services.STACK


def test_id_that_was_given_away_is_left_alone():
    """A process with the same id and another start is a stranger's."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        seen = stack_processes._look(stranger.pid)
        old = Running("old", stranger.pid, seen.started - 1)
        assert not is_alive(old)
        assert not members(old)
        assert stack_processes.end(old)
        assert stranger.poll() is None
        stranger.kill()


def test_fault_needs_a_stack(folder, capsys):
    """A switch that nobody reads is not turned, and leaves no file."""
    assert stack.main(["fault", "hang"]) == 1
    assert "make stack" in capsys.readouterr().out
    assert not folder.exists()
    assert stack.main(["sideways"]) == 2


def test_it_is_the_stack_of_compose():
    """Each service of the compose file, or what stands in its place, on the ports that it publishes."""
    names = {service.name for service in stack_services.services()}
    inside = {"net", "boards"}  # the network, and a step before Grafana
    assert names == (set(stack_services.COMPOSE) - inside - {"grafana"}) | {"dashboards"}
    ports = [port for service in stack_services.services() for port in service.ports]
    assert len(ports) == len(set(ports))
    published = re.findall(r"^\w+=(\d+)$", (ROOT / "docker" / ".env").read_text(), re.MULTILINE)
    assert set(map(int, published)) <= set(ports)
    told = {int(port) for port in re.findall(r"localhost:(\d+)", stack._UP)}
    assert told == set(map(int, published))


def test_places_of_containers_are_places_here():
    """No path of a container and no open address is left in any command or setting."""
    for service in stack_services.services():
        for word in (*service.command, *service.settings.values()):
            assert not word.startswith("0."), (service.name, word)
            for path in re.findall(r"(?<![\w.:/])/[^\s,:]+", word):
                assert Path(path).is_relative_to(ROOT), (service.name, word)
