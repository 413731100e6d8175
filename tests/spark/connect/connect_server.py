"""A real Connect server on loopback that can be killed, and a proxy before it that can be cut."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from pathlib import Path

from stage import wait_for


class Server:
    """Spark's own Connect server, from the jars of the installed PySpark."""

    def __init__(self, port, folder):
        self.port = port
        self._folder = Path(folder)
        self._process = None

    def start(self, seconds=240):
        import pyspark

        conf = {
            "spark.connect.grpc.binding.port": self.port,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
        }
        command = [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            *("--master", "local[2]", "--name", "connect-tests"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}")),
            "spark-internal",
        ]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self._folder
            )
        wait_for(self._answers, seconds, "the Connect server")

    def _answers(self):
        assert self._process.poll() is None, (self._folder / "server.log").read_text()[-3000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    @property
    def alive(self):
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self):
        """As a crash does: no word to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None


class Proxy:
    """Passes bytes on until it is cut; while it is cut nothing gets through, and nobody is told."""

    def __init__(self, target_port):
        self._target = ("127.0.0.1", target_port)
        self._open = threading.Event()
        self._open.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._pairs = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Swallow everything: what is sent waits, as in a network that is down."""
        self._open.clear()

    def mend(self):
        """Let it flow again."""
        self._open.set()

    def close(self):
        self._open.set()
        self._listening.close()
        for one in self._pairs:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listening.accept()[0]
                far = socket.create_connection(self._target)
                self._pairs += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._open.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
