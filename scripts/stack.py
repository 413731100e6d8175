"""The whole stack without containers, on loopback: `make stack`, `make stack-down`.

    python scripts/stack.py up | down | status | fault NAME

Everything it writes is under artifacts/stack; `down` leaves the logs there and nothing else. Services and
their ports are in stack_services.py.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from setup import ROOT, environment
from stack_processes import RECORD, end_all, is_alive, remembered, start, wait_until
from stack_services import (
    DOCKER,
    FAULTS,
    HOME,
    LOGS,
    STACK,
    TEMPORARY,
    WORK,
    Service,
    jars,
    services,
)

LAST_LINES = 25
_UP = """
  dashboards (a preview)  http://localhost:3000/dashboards
  the agent's live page   http://localhost:9465
  the pager               http://localhost:9099
  Prometheus              http://localhost:9090/classic/alerts
  Alertmanager (its API)  http://localhost:9093/api/v2/alerts
  Jaeger (its API)        http://localhost:16686/api/services
  Spark's master, UI      http://localhost:8080, http://localhost:4040

  Break something:        make stack-fault FAULT=hang    (or fail, slow; well mends it)
  Stop everything:        make stack-down
  Logs:                   {logs}
"""


class StackError(Exception):
    """The stack can't come up; says why and what to do."""


def say(text: str) -> None:
    """Tell a person."""
    print(text, flush=True)


# ---- up --------------------------------------------------------------------------------------


def up() -> int:
    """Start everything, or nothing."""
    if any(map(is_alive, remembered())):
        return _tell_what_runs()
    try:
        end_all()  # what a service that died has left
        _check_programs()
        _check_ports()
        _make_folders()
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, _interrupt)
        began = time.monotonic()
        try:
            for service in services():
                _bring(service)
        except BaseException:
            say("stack: stopping what was started")
            down()
            raise
    except StackError as error:
        say(f"stack: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    say(f"\nThe stack is up, after {time.monotonic() - began:.0f} s.\n{_where()}")
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _where() -> str:
    return _UP.format(logs=LOGS.relative_to(ROOT))


def _tell_what_runs() -> int:
    alive = {one.name for one in remembered() if is_alive(one)}
    missing = [service.name for service in services() if service.name not in alive]
    if missing:
        say(f"stack: {', '.join(missing)} does not run, the rest does; `make stack-down` ends it")
        return 1
    say(f"The stack is up.\n{_where()}")
    return 0


def _check_programs() -> None:
    places = (environment("4.3") / "bin", ROOT / ".programs" / "bin")
    names = {"spark-submit", "java", "prometheus", "alertmanager", "jaeger"}
    missing = sorted(name for name in names if not any((p / name).exists() for p in places))
    missing += [f"the jars of {name}" for name in ("broker", "kafka-4") if not jars(name)]
    if missing:
        raise StackError(f"{', '.join(missing)} not found; `make stack` brings what it needs")


def _check_ports() -> None:
    taken = [(s.name, port) for s in services() for port in s.ports if _is_taken(port)]
    if taken:
        rows = ", ".join(f"{port} ({name})" for name, port in taken)
        raise StackError(
            f"something else listens on {rows}; end it and try again: the configuration files in "
            "docker/ and the links in alerts name these ports (`ss -ltnp` shows whose they are)"
        )


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _make_folders() -> None:
    shutil.rmtree(STACK, ignore_errors=True)
    for folder in (LOGS, WORK, FAULTS, TEMPORARY, HOME):
        folder.mkdir(parents=True)


def _bring(service: Service) -> None:
    began = time.monotonic()
    try:
        running = start(service)
    except OSError as error:
        raise StackError(f"{service.name} can't be started: {error}") from error
    except subprocess.SubprocessError as error:  # it failed, or took too long
        raise StackError(
            f"the step before {service.name} failed; {_last_words(service)}"
        ) from error
    wait_until(lambda: answers(service) or not is_alive(running), service.seconds)
    seconds = time.monotonic() - began
    if not is_alive(running):
        raise StackError(f"{service.name} ended at once; {_last_words(service)}")
    if not answers(service):
        raise StackError(
            f"{service.name} is not ready after {seconds:.0f} s; {_last_words(service)}"
        )
    say(f"  {service.name:<13} ready on port {service.ports[0]:<6} {seconds:5.1f} s")


def _last_words(service: Service) -> str:
    place = LOGS / f"{service.name}.log"
    lines = place.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return f"the end of {place.relative_to(ROOT)}:\n" + "\n".join(f"  | {line}" for line in lines)


def answers(service: Service) -> bool:
    """Whether a service is ready."""
    if not service.path:
        with socket.socket() as probe:
            probe.settimeout(2)
            return probe.connect_ex(("127.0.0.1", service.ports[0])) == 0
    connection = http.client.HTTPConnection("127.0.0.1", service.ports[0], timeout=5)
    try:
        connection.request("GET", service.path)
        answer = connection.getresponse()
        return answer.status == http.HTTPStatus.OK and service.says.encode() in answer.read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


# ---- down, status, fault -----------------------------------------------------------------------


def down() -> int:
    """End what was started, and remove all but the logs."""
    was_up = RECORD.exists()
    left = end_all()
    if left:
        say(f"stack: {', '.join(left)} could not be ended; `make stack-down` tries again")
        return 1
    if was_up:
        _keep_executors_logs()
    for place in STACK.iterdir() if STACK.exists() else ():
        if place.is_dir() and place != LOGS:
            shutil.rmtree(place)
        elif place != LOGS:
            place.unlink()
    logs = f" Its logs are in {LOGS.relative_to(ROOT)}." if LOGS.exists() else ""
    say(f"The stack is down.{logs}" if was_up else f"The stack was not up.{logs}")
    return 0


def _keep_executors_logs() -> None:
    for place in sorted(WORK.glob("app-*/*/stderr")):
        shutil.copy(place, LOGS / f"executor-{place.parent.name}.log")


def status() -> int:
    """Say of each service whether it runs and answers; 1 if one does not."""
    alive = {one.name for one in remembered() if is_alive(one)}
    fine = True
    for service in services():
        ready = service.name in alive and answers(service)
        fine = fine and ready
        state = "ready" if ready else "runs, no answer" if service.name in alive else "not running"
        say(f"  {service.name:<13} {state}")
    return 0 if fine else 1


def fault(name: str) -> int:
    """Turn the fault switch of the demo job."""
    if not any(map(is_alive, remembered())):
        say("stack: it is not up; `make stack` starts it")
        return 1
    command = [sys.executable, str(DOCKER / "demo" / "faults.py"), *([name] if name else [])]
    settings = {**os.environ, "DEMO_FAULTS": str(FAULTS)}
    return subprocess.run(command, env=settings, check=False).returncode


def main(given: list[str]) -> int:
    """Do what is asked for; the exit status."""
    commands = {"up": up, "down": down, "status": status}
    match given:
        case [name] if name in commands:
            return commands[name]()
        case ["fault", *names] if len(names) <= 1:
            return fault("".join(names))
    say("python scripts/stack.py up | down | status | fault NAME")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
