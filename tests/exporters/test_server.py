"""The page is served: where, to whom, and whatever else happens."""

import base64
import contextlib
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
import trustme
from prometheus_client import CollectorRegistry, Gauge
from stage import Life, feed, program, wait_for

from streamgauge.config import ConfigError, make_config
from streamgauge.exporters.http.server import MetricsServer
from streamgauge.model.application import Application, CurrentApplication


@pytest.fixture
def serve():
    """Makes servers on loopback and closes them."""
    made = []

    def make(live=lambda: b"{}", failed=lambda _: None, words="Here.", **settings):
        application = Application(name="shop")
        registry = CollectorRegistry()
        Gauge("up_here", words, registry=registry).set(1)
        settings.setdefault("metrics_address", "127.0.0.1:0")
        made.append(
            MetricsServer(
                make_config(settings),
                registry,
                application=lambda: application,
                live=live,
                failed=failed,
            )
        )
        return made[-1]

    yield make
    for server in made:
        server.close()


def _get(url, headers=None, context=None):
    request = urllib.request.Request(url, headers=headers or {})
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_serves_text_and_openmetrics(serve):
    """The client's Accept header chooses."""
    server = serve()
    assert "up_here 1.0" in _get(f"{server.address}/metrics")[2]
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    _, kind, text = _get(f"{server.address}/metrics", accept)
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    "accept",
    [
        *("application/openmetrics-text; version=abc", "application/openmetrics-text; version=2.x"),
        *("text/plain; version=1.x", "text/plain; version=" + "9" * 5000, "version=;;=,;"),
    ],
)
def test_accept_header_that_makes_no_sense_gets_plain_text(serve, accept):
    """Whoever can't say what is wanted gets what all can read."""
    _, kind, text = _get(f"{serve().address}/metrics", {"Accept": accept})
    assert kind.startswith("text/plain")
    assert "up_here 1.0" in text


@pytest.mark.parametrize("path", ["/metrics", "/", "/live.json", "/-/healthy"])
def test_head_is_get_without_the_body(serve, path):
    """Its headers say how long the page is; the page itself is not sent."""
    server = serve()
    said = []
    for method in ("GET", "HEAD"):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(f"{method} {path} HTTP/1.0\r\n\r\n".encode())
            said.append(b"".join(iter(lambda: client.recv(65_536), b"")).partition(b"\r\n\r\n"))
    (headers, _, body), (head, _, nothing) = said
    assert headers.startswith(b"HTTP/1.0 200")
    assert headers.splitlines()[3:] == head.splitlines()[3:]
    assert f"Content-Length: {len(body)}".encode() in headers.splitlines()
    assert (bool(body), nothing) == (True, b"")


def test_live_page_can_be_neither_framed_nor_redirected(serve):
    """What `default-src` does not cover is said as well."""
    with urllib.request.urlopen(serve().address, timeout=10) as answer:
        policy = answer.headers["Content-Security-Policy"].split("; ")
    assert {"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} <= set(policy)


def test_other_paths(serve):
    """Healthy is healthy, unknown is 404, writing is not allowed."""
    server = serve()
    assert _get(f"{server.address}/-/healthy")[0] == 200
    assert "<title>streamgauge</title>" in _get(f"{server.address}/")[2]
    assert "streamgauge_query_state" in _get(f"{server.address}/docs")[2]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        _get(f"{server.address}/nothing<script>")
    request = urllib.request.Request(f"{server.address}/metrics", data=b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(request, timeout=10)


def test_loopback_by_default():
    """Nobody else sees the page unless somebody says so."""
    assert make_config({}).metrics_endpoint() == ("127.0.0.1", 9465)


def test_taken_port_moves_on(serve):
    """The next free one of sixteen, and the address says which."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = serve(metrics_address=f"127.0.0.1:{port}")
        assert port < server.port <= port + 16
        assert "up_here" in _get(f"{server.address}/metrics")[2]


def test_real_prometheus_finds_a_moved_port_through_the_sd_file(serve, tmp_path):
    """`sd_file` is read by Prometheus itself, and the target is scraped."""
    targets = tmp_path / "targets.json"
    server = serve(sd_file=str(targets))
    assert json.loads(targets.read_text())[0]["targets"] == [f"127.0.0.1:{server.port}"]
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n- job_name: spark\n  scrape_interval: 1s\n"
        f"  file_sd_configs: [{{files: ['{targets}'], refresh_interval: 1s}}]\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    prometheus = subprocess.Popen(
        [
            program("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def scraped():
        try:
            answer = _get(f"http://127.0.0.1:{port}/api/v1/query?query=up_here")[2]
        except OSError:
            return False
        return json.loads(answer)["data"]["result"]

    try:
        (sample,) = wait_for(scraped, 30, "the scrape")
    finally:
        prometheus.terminate()
        prometheus.wait(10)
    assert sample["metric"]["spark_app"] == "shop"
    assert sample["value"][1] == "1"
    server.close()
    assert not targets.exists()


def test_discovery_file_that_cant_be_written_costs_no_page(agent, tmp_path):
    """It is counted once; the page is served, and goes with the agent."""
    mine = agent(metrics_address="127.0.0.1:0", sd_file=str(tmp_path / "none" / "x.json"))
    address = mine.address
    assert _get(f"{address}/-/healthy")[0] == 200
    assert mine.stats.of("errors") == {"server": 1}
    mine.close()
    with pytest.raises(OSError, match="refused"):
        _get(f"{address}/-/healthy")


def test_driver_that_ends_takes_only_its_own_target_back(serve, tmp_path):
    """Two of one file: the later one's target stays when the first goes."""
    targets = tmp_path / "targets.json"
    first, second = serve(sd_file=str(targets)), serve(sd_file=str(targets))
    first.close()
    assert json.loads(targets.read_text())[0]["targets"] == [f"127.0.0.1:{second.port}"]
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_discovery_file_follows_no_planted_link(serve, tmp_path):
    """Whoever may write to the folder can't make the driver write elsewhere."""
    targets, elsewhere = tmp_path / "targets.json", tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    for link in (targets, tmp_path / f".targets.json.{os.getpid()}"):
        link.symlink_to(elsewhere)
    server = serve(sd_file=str(targets))
    assert elsewhere.read_text() == "kept"
    assert str(server.port) in targets.read_text()


@pytest.fixture
def authority(tmp_path):
    """A certificate for 127.0.0.1, and who vouches for it."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    path = tmp_path / "cert.pem"
    certificate.private_key_and_cert_chain_pem.write_to_path(str(path))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return str(path), context


def test_tls_and_password(serve, tmp_path, authority):
    """Over TLS, with the right password only."""
    certificate, context = authority
    password = tmp_path / "auth"
    password.write_text("prom:s3cret\n")
    server = serve(metrics_tls_cert=certificate, metrics_auth_file=str(password))
    assert server.address.startswith("https://")
    right = {"Authorization": "Basic " + base64.b64encode(b"prom:s3cret").decode()}
    assert "up_here" in _get(f"{server.address}/metrics", right, context)[2]
    wrong = {"Authorization": "Basic " + base64.b64encode(b"prom:guess").decode()}
    for headers in ({}, wrong, {"Authorization": "Basic \xff"}, {"Authorization": "Bearer x"}):
        for path in ("/metrics", "/", "/live.json", "/docs", "/-/healthy"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                _get(f"{server.address}{path}", headers, context)


def test_bad_certificate_and_password_files_say_which(serve, tmp_path):
    """The error names the setting and the file."""
    with pytest.raises(ConfigError, match="metrics_tls_cert"):
        serve(metrics_tls_cert=str(tmp_path / "no.pem"))
    with pytest.raises(ConfigError, match="metrics_auth_file"):
        serve(metrics_tls_cert="x", metrics_auth_file=str(tmp_path / "none"))


def test_client_that_says_nothing_holds_up_nobody(serve, authority):
    """A silent connection, also in the middle of a TLS handshake, costs one place."""
    certificate, context = authority
    server = serve(metrics_tls_cert=certificate)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
    try:
        assert "up_here" in _get(f"{server.address}/metrics", context=context)[2]
    finally:
        for connection in silent:
            connection.close()


def test_clients_that_drip_are_cut(serve, monkeypatch):
    """A byte before each timeout holds a place until the deadline, and no longer."""
    monkeypatch.setattr("streamgauge.exporters.http.sockets.CONNECTION_SECONDS", 3.0)
    server = serve()
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    done = threading.Event()

    def drip():
        while not done.wait(0.1):
            for client in slow:
                with contextlib.suppress(OSError):
                    client.send(b"G")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        assert not _try(server)
        wait_for(lambda: _try(server), 20, "a free place")
    finally:
        done.set()
        dripping.join()
        for client in slow:
            client.close()


def test_client_that_does_not_read_writes_nothing_into_the_log(serve, monkeypatch, capfd):
    """Its place is free again after the deadline, and standard error stays clean."""
    monkeypatch.setattr("streamgauge.exporters.http.sockets.CONNECTION_SECONDS", 2.0)
    server = serve(live=lambda: bytes(50_000_000))
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"GET /live.json HTTP/1.0\r\n\r\n")
        assert client.recv(1)
        wait_for(lambda: not server._server._deadlines, 20, "the end")
    assert capfd.readouterr().err == ""


def test_page_that_fails_is_told_and_not_printed(serve, capfd):
    """The client gets a 500, the agent counts, and no traceback is in the driver's log."""
    told = []
    server = serve(live=lambda: 1 / 0, failed=told.append)
    with pytest.raises(urllib.error.HTTPError, match="500"):
        _get(f"{server.address}/live.json")
    assert [type(error) for error in told] == [ZeroDivisionError]
    assert capfd.readouterr().err == ""


def test_scrape_that_was_cut_is_no_scrape(serve):
    """Who lingers for the last scrape waits for one that was written whole."""
    server = serve(words="x" * 50_000_000)
    begun = []

    def ask():
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            begun.append(client.recv(1))

    asking = threading.Timer(0.2, ask)
    asking.start()
    assert not server.scrapers.await_any(4)
    asking.join()
    assert begun == [b"H"]


def test_flood_of_connections_is_bounded(serve):
    """A hundred idle connections make no hundred threads."""
    server = serve()
    before = threading.active_count()
    flood = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    try:
        time.sleep(0.5)
        assert threading.active_count() - before <= 33
    finally:
        for connection in flood:
            connection.close()
    wait_for(lambda: _try(server), 20, "a free place")


def _try(server):
    try:
        return "up_here" in _get(f"{server.address}/metrics")[2]
    except OSError:
        return False


def test_agent_with_every_port_taken_goes_on(agent):
    """No page, one counted error, and events are handled all the same."""
    sockets = []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        first = probe.getsockname()[1]
    try:
        for port in range(first, first + 17):
            taken = socket.socket()
            sockets.append(taken)
            try:
                taken.bind(("127.0.0.1", port))
                taken.listen()
            except OSError:
                continue
        mine = agent(metrics_address=f"127.0.0.1:{first}")
    finally:
        for taken in sockets:
            taken.close()
    assert mine.address is None
    assert mine.stats.of("errors") == {"server": 1}
    life = Life()
    feed(mine, life.started(), life.progress())
    assert mine.stats.of("events") == {"started": 1, "progress": 1}


def test_announcing_rewrites_the_discovery_file(tmp_path):
    """A Connect client's name is known later than its port."""
    targets, current = tmp_path / "targets.json", CurrentApplication(Application())
    config = make_config({"metrics_address": "127.0.0.1:0", "sd_file": str(targets)})
    server = MetricsServer(config, CollectorRegistry(), application=current)
    assert json.loads(targets.read_text())[0]["labels"] == {"spark_app": "unknown"}
    current.enter("shop")
    server.announce()
    assert json.loads(targets.read_text())[0]["labels"] == {"spark_app": "shop"}
    server.close()
    assert not targets.exists()
