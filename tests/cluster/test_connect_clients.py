"""A Connect server with the agent attached, and two clients, each with a listener of its own.

Each page tells what its agent can see, exactly; truth is what Spark left in the checkpoints.
"""

import json

import pytest
from connect_app import App, exits
from connect_hub import Hub
from ground_truth import Truth
from stage import value, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
FILES = {"a": 4, "b": 6}
ROWS = 10


class Client:
    """An application with one query `orders`, which reads a folder of its own."""

    def __init__(self, port, folder):
        self.folder = folder
        self.truth = Truth(folder)
        (folder / "in").mkdir(parents=True)
        self.app = App(port)
        self.app.listen()

    def feed(self, files):
        """Put so many more files there."""
        for _ in range(files):
            number = len(list((self.folder / "in").iterdir()))
            part = self.folder / "part"
            part.write_text("".join(json.dumps({"id": n}) + "\n" for n in range(ROWS)))
            part.rename(self.folder / "in" / f"{number}.json")

    def start(self):
        """Start the query and have it read what is there; its id."""
        source, place = str(self.folder / "in"), str(self.folder / "checkpoint")
        self.app.tell(
            "query = spark.readStream.schema('id long').option('maxFilesPerTrigger', 1)"
            f".json({source!r}).writeStream.format('noop').queryName('orders')"
            f".option('checkpointLocation', {place!r}).start()"
        )
        self.app.tell("query.processAllAvailable()")
        return self.app.tell("print(query.id)")[0]


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """The server."""
    one = Hub(tmp_path_factory.mktemp("hub"))
    yield one
    one.kill()


@pytest.fixture(scope="module")
def clients(hub, tmp_path_factory):
    """Two clients whose queries have read all of their files; the ids of the queries."""
    made = {name: Client(hub.port, tmp_path_factory.mktemp(name) / "job") for name in FILES}
    for name, client in made.items():
        client.feed(FILES[name])
    ids = {name: client.start() for name, client in made.items()}
    yield made, ids
    for client in made.values():
        client.app.kill()


def _infos(samples):
    """Labels of `query_info` by query id."""
    infos = [dict(labels) for name, labels in samples if name.endswith("_query_info")]
    assert len({info["query_id"] for info in infos}) == len(infos)
    return {info["query_id"]: info for info in infos}


def _await_batches(look, query, number):
    """A page that has so many batches of a query."""

    def enough():
        samples = look()
        last = value(samples, "last_committed_batch_id", query=query)
        return samples if last == number - 1 else None

    return wait_for(enough, 60, f"{number} batches of {query}")


def _check(samples, query, batches):
    """Everything once."""
    assert value(samples, "batches_total", query=query, data="true") == batches
    assert value(samples, "batches_total", query=query, data="false") == 0
    assert value(samples, "batches_replayed_total", query=query) == 0
    assert value(samples, "input_rows_total", query=query) == batches * ROWS
    assert value(samples, "query_starts_total", query=query) == 1
    assert value(samples, "agent_missed_batches_total", query=None) == 0
    assert value(samples, "agent_fallback_events_total", query=None) == 0
    assert value(samples, "agent_events_total", query=None, kind="duplicate") == 0


def test_each_client_counts_its_own_query_once(clients):
    """Exactly what is in its checkpoint, and nothing of the other, on a page of its own."""
    made, ids = clients
    assert made["a"].app.address != made["b"].app.address
    for name, client in made.items():
        samples = _await_batches(client.app.page, "orders", FILES[name])
        assert client.truth.committed() == list(range(FILES[name]))
        _check(samples, "orders", FILES[name])
        (info,) = _infos(samples).values()
        assert info["query_id"] == ids[name]
        assert (info["app"], info["checkpoint"]) == ("hub", "")
        assert value(samples, "agent_events_total", query=None, kind="progress") == FILES[name]


def test_server_side_counts_the_queries_of_both_once(hub, clients):
    """The same numbers, under names that don't mix, with what a client can't know."""
    made, ids = clients
    labels = {"a": "orders", "b": f"orders-{ids['b'][:8]}"}
    for name, client in made.items():
        samples = _await_batches(hub.page, labels[name], FILES[name])
        _check(samples, labels[name], FILES[name])
        info = _infos(samples)[ids[name]]
        assert info["query"] == labels[name]
        assert info["checkpoint"].endswith(str(client.folder / "checkpoint"))
        assert info["trigger"] == "processing_time"
    samples = hub.page()
    assert set(_infos(samples)) == set(ids.values())
    progress = value(samples, "agent_events_total", query=None, kind="progress")
    assert progress == sum(FILES.values())


def test_query_of_a_killed_client_is_still_seen_on_the_server(hub, clients):
    """Spark lets it run on; its own agent is gone, the server's goes on counting."""
    made, ids = clients
    label = f"orders-{ids['b'][:8]}"
    made["b"].app.kill()
    made["b"].feed(2)
    samples = _await_batches(hub.page, label, FILES["b"] + 2)
    _check(samples, label, FILES["b"] + 2)
    assert len(made["b"].truth.committed()) == FILES["b"] + 2
    assert value(samples, "query_active", query=label) == 1
    assert value(made["a"].app.page(), "input_rows_total") == FILES["a"] * ROWS


def test_end_of_a_query_is_told_by_both_sides(hub, clients):
    """Stopped, once here and once there; client and server end well."""
    made, _ = clients
    app = made["a"].app
    app.tell("query.stop()")
    for look in (app.page, hub.page):
        wait_for(
            lambda look=look: value(look(), "query_terminations_total", outcome="stopped") == 1,
            30,
            "the end",
        )
        samples = look()
        assert value(samples, "query_state", state="stopped") == 1
        assert value(samples, "query_terminations_total", outcome="failed") == 0
        assert value(samples, "query_terminations_total", outcome="unknown") == 0
        _check(samples, "orders", FILES["a"])
    exits(app)
    assert hub.exit() == 0
