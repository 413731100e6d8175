"""What SECURITY.md says of the code, where no other test says it."""

import json
import os
import stat
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, push_to_gateway
from stage import ROOT, Life, feed, page

from streamgauge.masking import mask

SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROW = "[CAST_INVALID_INPUT] The value 'Ada Lovelace' of the type STRING can't be cast to BIGINT"


def ask(address, path, method="GET"):
    """The status that a request gets."""
    request = urllib.request.Request(address + path, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_server_takes_no_command(agent):
    """It answers GET and HEAD, and refuses the rest on every path."""
    served = agent(metrics_address="127.0.0.1:0")
    for path in ("/", "/metrics", "/live.json", "/-/healthy"):
        assert ask(served.address, path)[0] == 200
        for method in ("POST", "PUT", "DELETE"):
            assert ask(served.address, path, method)[0] == 405


def test_healthy_says_nothing_of_queries(agent):
    """A failed query answers 200: the probe would find nothing to mend."""
    served = agent(metrics_address="127.0.0.1:0")
    life = Life("orders")
    feed(served, life.started(), life.terminated(exception=ROW))
    assert ask(served.address, "/-/healthy")[0] == 200


def test_values_of_rows_in_exceptions_are_not_masked(agent):
    """The page warns of it, so it must be so: both pages have the first line of what went wrong."""
    served = agent(metrics_address="127.0.0.1:0")
    life = Life("orders")
    feed(served, life.started(), life.terminated(exception=ROW))
    assert "Ada Lovelace" in ask(served.address, "/live.json")[1]
    assert "Ada Lovelace" in ask(served.address, "/metrics")[1]
    long = Life("long")
    feed(served, long.started(), long.terminated(exception=f"E: x{'x' * 500}\n{ROW}"))
    assert ask(served.address, "/metrics")[1].count("Ada Lovelace") == 2  # the first query's


@pytest.mark.parametrize(
    "text",
    [
        *("x=hunter2", "?code=hunter2", "-u admin:hunter2", "-p hunter2", "password is hunter2"),
        *("token hunter2", "password=my hunter2", "u:hunter2@host", "scott/hunter2@db"),
        *(
            '{"value":"hunter2","name":"password"}',
            "password&#61;hunter2",
            r"password\u003dhunter2",
        ),
    ],
)
def test_page_says_what_is_not_masked(text):
    """A limit that is gone goes from the page too."""
    assert f"`{text}`" in SECURITY
    assert "hunter2" in mask(text)


def test_metrics_page_has_the_ids_of_runs(agent):
    """The page says so of `query_info`."""
    served = agent(metrics_address="")
    life = Life("orders")
    feed(served, life.started())
    (info,) = [dict(pairs) for name, pairs in page(served) if name == "streamgauge_query_info"]
    assert (info["run_id"], info["query_id"]) == (life.run_id, life.query_id)


def test_settings_that_become_labels_are_published_as_they_are(agent):
    """Whoever writes a secret into `team` publishes it."""
    served = agent(team="token=abc123456", metrics_address="")
    feed(served, Life("orders").started())
    infos = [dict(pairs) for name, pairs in page(served) if name == "streamgauge_query_info"]
    assert [info["team"] for info in infos] == ["token=abc123456"]


def test_unusable_password_file_shuts_the_door(agent, tmp_path):
    """The query runs on; nothing is served."""
    closed = agent(
        metrics_address="127.0.0.1:0",
        metrics_tls_cert=str(tmp_path / "none.pem"),
        metrics_auth_file=str(tmp_path / "none"),
    )
    feed(closed, Life("orders").started())
    assert closed.address is None
    assert closed.stats.of("errors")["server"] == 1


def test_pushgateway_takes_no_password_from_the_address(gateway):
    """As the page says: a user in the address is not understood, and nothing is pushed."""
    address = gateway().replace("http://", "http://user:password@")
    with pytest.raises(OSError, match=r"(?i)name|resolution|nodename"):
        push_to_gateway(address, job="x", registry=CollectorRegistry(), timeout=5)


def test_discovery_file_is_readable_for_prometheus(agent, tmp_path):
    """Whatever the umask: Prometheus is another user; it holds an address and a name."""
    place = tmp_path / "driver.json"
    before = os.umask(0o077)
    try:
        agent(metrics_address="127.0.0.1:0", sd_file=str(place))
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o644
    (target,) = json.loads(place.read_text())
    assert set(target) == {"targets", "labels"}
    assert set(target["labels"]) <= {"spark_app", "__scheme__"}


def test_page_names_every_door():
    """Each setting that opens something is spoken of."""
    doors = (
        "metrics_address",
        "metrics_tls_cert",
        "metrics_auth_file",
        "sd_file",
        "pushgateway_url",
    )
    for door in (*doors, "traces", "flight_recorder_dir", "kafka", "log_level"):
        assert f"`{door}" in SECURITY, door
