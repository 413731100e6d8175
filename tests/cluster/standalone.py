"""A Spark standalone cluster on loopback: a master and workers, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from stage import free_port, wait_for

HOME = Path(pyspark.__file__).parent
JVM = "-XX:-UsePerfData"


class Process:
    """A program in a process group of its own, which ends with everything that it started."""

    def __init__(self, command: list[str], folder: Path, name: str, **environ: str) -> None:
        self.log = folder / f"{name}.log"
        # Spark's Java and home are those of the Python that the tests run in.
        environ = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", **environ}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environ,
                start_new_session=True,
            )

    def wait(self, seconds: float) -> int:
        """Its status, once it has ended by itself."""
        return self._process.wait(seconds)

    def assert_alive(self) -> None:
        """Fail with its last words if it has ended."""
        assert self._process.poll() is None, self.log.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        """As a crash does: no word to anybody."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)


class Cluster:
    """A master, and workers with one core each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pages = free_port()
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self.workers: dict[str, Process] = {}
        self._started: list[Process] = []
        self._start("master", "master.Master", "--port", str(port), "--webui-port", self._pages)

    def add_worker(self, name: str) -> None:
        """Start a worker; its tasks find its name in CLUSTER_WORKER."""
        self.workers[name] = self._start(
            name,
            "worker.Worker",
            *("--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "1g"),
            *("--work-dir", self.folder / "work" / name, self.url),
            CLUSTER_WORKER=name,
            SPARK_LOCAL_DIRS=str(self.folder / "scratch" / name),
        )

    def lose_worker(self, name: str) -> None:
        """As a host that is gone, and its disk with it."""
        self.workers.pop(name).kill()
        shutil.rmtree(self.folder / "scratch" / name)
        self.await_workers(len(self.workers))

    def _start(self, name: str, what: str, *words: object, **environ: str) -> Process:
        process = Process(
            [
                *(str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}"),
                *("--host", "127.0.0.1", *map(str, words)),
            ],
            self.folder,
            name,
            SPARK_DAEMON_MEMORY="192m",
            SPARK_DAEMON_JAVA_OPTS=JVM,
            **environ,
        )
        self._started.append(process)
        return process

    def await_workers(self, number: int, seconds: float = 90) -> None:
        """Wait until the master has so many workers that live."""
        wait_for(lambda: len(self._alive()) == number, seconds, f"{number} workers")

    def _alive(self) -> list[dict]:
        self._started[0].assert_alive()
        return [worker for worker in self.page()["workers"] if worker["state"] == "ALIVE"]

    def page(self) -> dict:
        """What the master says of itself; nothing at all before it answers."""
        address = f"http://127.0.0.1:{self._pages}/json/"
        # While it starts, an address that it does not know yet is answered with its main page.
        with (
            contextlib.suppress(OSError, json.JSONDecodeError),
            urllib.request.urlopen(address, timeout=5) as answer,
        ):
            return json.load(answer)
        return {"workers": [], "activeapps": [], "completedapps": []}

    def submit(
        self, name: str, job: list[str], *, python: Path, py_files: Path, **environ: str
    ) -> Process:
        """Hand in a job in client mode: the driver is the process that is returned."""
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": JVM,
            "spark.executor.extraJavaOptions": JVM,
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.files.maxPartitionBytes": "16k",  # several tasks a file
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }
        process = Process(
            [
                *(str(HOME / "bin" / "spark-submit"), "--master", self.url, "--name", "shop"),
                *("--driver-memory", "512m", "--py-files", str(py_files)),
                *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}")),
                *job,
            ],
            self.folder,
            name,
            PYSPARK_PYTHON=str(python),
            **environ,
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """End everything, and see it gone."""
        for process in reversed(self._started):
            process.kill()
        wait_for(lambda: not self._left(), 30, "the end of every process of the cluster")

    def _left(self) -> list[str]:
        """Processes that work in the cluster's folder."""
        found = []
        for link in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):  # it has just ended, or is not ours
                if link.readlink().is_relative_to(self.folder):
                    found.append(link.parent.name)
        return found


@contextmanager
def standalone(folder: Path, workers: tuple[str, ...]) -> Iterator[Cluster]:
    """A cluster for as long as the block lasts."""
    folder.mkdir()
    cluster = Cluster(folder)
    try:
        for name in workers:
            cluster.add_worker(name)
        cluster.await_workers(len(workers))
        yield cluster
    finally:
        cluster.close()
