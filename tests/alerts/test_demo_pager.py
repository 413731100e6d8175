"""The pager of the demo stack, behind the real Alertmanager."""

from __future__ import annotations

import sys
import threading
import urllib.request

import pytest
from alert_stack import Alertmanager, wait_until
from promtool import ROOT

from streamgauge.grafana.alerts.settings import Settings

sys.path.insert(0, str(ROOT / "docker" / "demo"))
from pager import Pager


@pytest.fixture
def pager():
    """The demo's pager on loopback."""
    with Pager("127.0.0.1", 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def test_page_is_shown(pager, tmp_path):
    """A critical alert comes to the pager, as text and not as markup; the beat of the watchdog doesn't."""
    url = f"http://127.0.0.1:{pager.server_port}"
    urls = {"pager_url": f"{url}/page", "deadman_url": f"{url}/deadman"}
    settings = Settings({"group_wait": 1, **urls})
    labels = {"severity": "critical", "app": "shop", "query": "<orders>"}
    with Alertmanager(tmp_path, settings) as alertmanager:
        alertmanager.send([{"alertname": "SparkStreamWatchdog", "severity": "none"}])
        alertmanager.send([{"alertname": "SparkStreamBatchStuck", **labels}])
        wait_until(lambda: pager.lines, "the page")
    (line,) = pager.lines
    assert line[1:] == ("page", "firing", "SparkStreamBatchStuck", "shop <orders>: ")
    with urllib.request.urlopen(url, timeout=5) as answer:
        assert b"&lt;orders&gt;" in answer.read()


def test_pager_refuses_what_is_no_notification(pager):
    """And goes on."""
    request = urllib.request.Request(f"http://127.0.0.1:{pager.server_port}/page", b"nonsense")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(request, timeout=5)
    with urllib.request.urlopen(f"http://127.0.0.1:{pager.server_port}/lines.json") as answer:
        assert answer.read() == b"[]"
