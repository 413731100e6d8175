"""What a driver loads: no more than it needs."""

import json
import subprocess
import sys

from stage import ROOT

PROGRAM = """
import json, sys
import streamgauge.exporters, streamgauge.exporters.logs, streamgauge.exporters.http.live
import streamgauge.exporters.http.server, streamgauge.exporters.metrics.collector
import streamgauge.exporters.metrics.pushgateway, streamgauge.throttle
print(json.dumps(sorted(sys.modules)))
"""


def test_exporters_load_neither_traces_nor_what_reads_checkpoints():
    """OpenTelemetry, Spark, the listener and the reference of metrics come only where they are used."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT
    )
    heavy = (
        *("opentelemetry", "pyspark", "streamgauge.checkpoint", "streamgauge.listener"),
        *("streamgauge.exporters.traces", "streamgauge.exporters.metrics.reference"),
        *("importlib.resources", "fsspec"),
    )
    loaded = json.loads(done.stdout)
    assert [name for name in loaded if name.startswith(heavy)] == []
