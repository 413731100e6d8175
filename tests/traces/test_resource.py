"""The resource: which application the spans come from."""

from stage import Life, apply_to

from streamgauge.exporters.traces.resource import describe_resource
from streamgauge.exporters.traces.tracer import Tracer
from streamgauge.model.application import Application
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import RunDetails


def _fleet():
    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), 1.0)
    details = RunDetails(
        query_id=life.query_id, run_id=life.run_id, app_id="app-2", spark_version="4.1.0"
    )
    apply_to(fleet, details, 1.0)
    return fleet


def test_what_the_application_does_not_say_a_query_does():
    """A Connect client knows its application only by its queries; what nobody knows is empty."""
    assert set(describe_resource(Application(), {}).values()) == {"unknown", ""}
    found = describe_resource(Application(name="shop", env="prod"), _fleet().queries)
    assert found == {
        "service.name": "shop",
        "service.instance.id": "app-2",
        "service.version": "",
        "deployment.environment.name": "prod",
        "spark.app.id": "app-2",
        "spark.version": "4.1.0",
    }


def test_application_that_is_known_is_no_query_s():
    """Its own id and version count."""
    application = Application(app_id="app-1", spark_version="3.5.9", code_version="1.2")
    found = describe_resource(application, _fleet().queries)
    assert (found["spark.app.id"], found["spark.version"]) == ("app-1", "3.5.9")
    assert found["service.version"] == "1.2"


def test_tracer_enters_another_application():
    """A pipeline that is there gets the new resource; one that is not asks when it is made."""
    told = []

    class Pipeline:
        def set_resource(self, attributes):
            told.append(attributes["service.name"])

    tracer = Tracer(Pipeline, lambda: _fleet().queries)
    tracer.enter(Application(name="early"))
    assert told == []
    assert tracer.pipeline
    tracer.enter(Application(name="late"))
    assert told == ["late"]
