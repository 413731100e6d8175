"""Where checkpoints lie: local, remote, in memory; nothing outside is opened, nothing is written."""

from __future__ import annotations

import http.server
import os
import socket
import threading
from functools import partial

import pytest
from recorded_checkpoints import packed, unpack
from s3_server import S3Handler

from streamgauge.checkpoint.errors import CannotLookError, MissingFileError, RefusedError
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.store import LocalStore, MemoryStore, RemoteStore, open_store
from streamgauge.checkpoint.restart.forecast import forecast


@pytest.fixture
def serve():
    """A function that serves HTTP on loopback until the test ends."""
    servers = []

    def start(handler):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.server_address[1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    """Python's own file server, without its log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_absolute_and_climbing_paths_are_refused(tmp_path):
    """A path that a file names can't lead out of the checkpoint."""
    store = LocalStore(str(tmp_path))
    for path in ("/etc/passwd", "../outside", "state/../../outside", "a\0b"):
        with pytest.raises(RefusedError):
            store.read(path)


def test_link_out_of_the_checkpoint_is_listed_and_never_opened(tmp_path):
    """A symbolic link to a file outside is refused, whatever it is called."""
    (tmp_path / "secret").write_text("x")
    root = tmp_path / "checkpoint"
    (root / "offsets").mkdir(parents=True)
    (root / "offsets" / "0").symlink_to(tmp_path / "secret")
    (root / "state").symlink_to(tmp_path)
    store = LocalStore(str(root))
    assert [entry.name for entry in store.list("offsets")] == ["0"]
    with pytest.raises(RefusedError, match="offsets/0"):
        store.read("offsets/0")
    with pytest.raises(RefusedError):
        store.list("state")


def test_link_inside_the_checkpoint_is_followed(tmp_path):
    """A link that stays inside is as good as a file."""
    (tmp_path / "metadata.real").write_text("x")
    (tmp_path / "metadata").symlink_to("metadata.real")
    assert LocalStore(str(tmp_path)).read("metadata") == b"x"


def test_pipes_and_large_files_are_refused(tmp_path):
    """A pipe would block for ever and a large file would fill the memory."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 100)
    store = LocalStore(str(tmp_path))
    with pytest.raises(RefusedError, match="plain file"):
        store.read("pipe")
    with pytest.raises(RefusedError, match="100 bytes"):
        store.read("large", limit=99)


def test_what_is_not_there_is_said_so(tmp_path):
    """A missing file, a missing directory and a missing checkpoint are three things."""
    store = LocalStore(str(tmp_path))
    assert store.list("offsets") == []
    with pytest.raises(MissingFileError):
        store.read("metadata")
    with pytest.raises(CannotLookError, match="no such directory"):
        open_store(tmp_path / "nowhere")
    for scheme in ("file", "local"):
        assert isinstance(open_store(f"{scheme}://{tmp_path}"), LocalStore)


def test_unknown_scheme_names_the_extra():
    """A URL that no driver is there for is one clear error."""
    with pytest.raises(CannotLookError, match="nosuch"):
        open_store("nosuch://bucket/checkpoint")


def test_checkpoint_in_fsspecs_memory_is_read():
    """The same forecast from fsspec's memory as from a dict."""
    import fsspec

    files = packed("4.3.0/agg-rocksdb")
    memory = fsspec.filesystem("memory")
    for name, data in files.items():
        memory.pipe(f"/orders/{name}", data)
    seen = forecast(read_checkpoint("memory://orders"))
    assert seen == forecast(read_checkpoint(MemoryStore(files, root="memory://orders")))
    assert (seen.verdict, seen.batch) == ("safe", 4)


def test_checkpoint_over_http_is_read(tmp_path, serve):
    """A plain web server with listings is enough to look at a checkpoint."""
    unpack("4.3.0/agg-hdfs", tmp_path / "orders")
    port = serve(partial(QuietFiles, directory=str(tmp_path)))
    checkpoint = read_checkpoint(f"http://127.0.0.1:{port}/orders")
    seen = forecast(checkpoint)
    assert (seen.verdict, seen.batch, seen.state[0].ready) == ("safe", 4, 2)


def test_checkpoint_on_s3_is_read(serve):
    """An S3-compatible server on loopback, by way of s3fs."""
    files = packed("4.3.0/agg-v2")
    handler = partial(S3Handler, {f"orders/{name}": data for name, data in files.items()})
    port = serve(handler)
    checkpoint = read_checkpoint(
        "s3://lake/orders",
        key="x",
        secret="y",
        endpoint_url=f"http://127.0.0.1:{port}",
        client_kwargs={"region_name": "us-east-1"},
    )
    seen = forecast(checkpoint)
    assert (seen.verdict, seen.batch, seen.state[0].ready) == ("safe", 4, 2)
    with pytest.raises(MissingFileError):
        checkpoint.store.read("offsets/99")
    with pytest.raises(RefusedError):
        checkpoint.store.read("metadata", limit=3)


def test_remote_place_that_is_not_there_cannot_be_looked_at(serve):
    """An empty prefix is no checkpoint; a dead server is no checkpoint either."""
    port = serve(partial(S3Handler, {"other/metadata": b"{}"}))
    options = {"key": "x", "secret": "y", "endpoint_url": f"http://127.0.0.1:{port}"}
    with pytest.raises(CannotLookError):
        RemoteStore("s3://lake/orders", **options)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with pytest.raises(CannotLookError):
        RemoteStore(f"http://127.0.0.1:{free}/orders")


def test_memory_store_behaves_as_a_directory():
    """The double that ships for tests lists, reads and refuses as the real ones do."""
    store = MemoryStore({"offsets/0": "v1"}, {"state/0/0/1.delta": 46})
    assert {(entry.name, entry.is_dir) for entry in store.list()} == {
        ("offsets", True),
        ("state", True),
    }
    assert store.list("state/0/0")[0].size == 46
    assert store.modified("offsets/0") is None
    for path, error in (("nope", MissingFileError), ("state/0/0/1.delta", RefusedError)):
        with pytest.raises(error):
            store.read(path)
    with pytest.raises(RefusedError):
        store.read("offsets/0", limit=1)
