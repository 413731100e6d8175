"""A Spark driver that is a Connect server too, with the agent attached to all of its sessions."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import urllib.request
from pathlib import Path

from stage import free_port, page, wait_for

CODE = """
import sys
from pyspark.sql import SparkSession
import streamgauge

spark = (
    SparkSession.builder.master("local[2]")
    .appName("hub")
    .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    .config("spark.connect.grpc.binding.address", "127.0.0.1")
    .config("spark.connect.grpc.binding.port", sys.argv[1])
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
listener = streamgauge.attach(
    spark, metrics_address="127.0.0.1:0", watch_seconds=1, checkpoint_seconds=1
)
with open("address", "w") as file:
    file.write(listener.address)
sys.stdin.read()
spark.stop()
"""


class Hub:
    """The server, in a process of its own; ready once it is made."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._log = folder / "hub.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", CODE, str(self.port)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        self.address = wait_for(self._address, 120, "the Connect server")

    def _address(self) -> str | None:
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-4000:]
        with contextlib.suppress(OSError):
            return (self._folder / "address").read_text()
        return None

    def page(self) -> dict:
        """The samples of its page."""
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=20) as answer:
            return page(answer.read().decode())

    def exit(self) -> int:
        """Let the driver end; its status."""
        self._process.stdin.close()
        return self._process.wait(60)

    def kill(self) -> None:
        """End it, this very process."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)
