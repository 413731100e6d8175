"""`streamgauge rules check`: asked of a real Prometheus that scrapes a real agent."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from alert_stack import Program, free_port, get_json, wait_until
from promtool import ROOT, program, time_of
from stage import Life, QuietDriver, feed
from test_rules_command import rules

from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.grafana.alerts.catalogue import alert_names
from streamgauge.grafana.alerts.check import CONDITIONAL
from streamgauge.grafana.alerts.prometheus import Export, disabled_names, needed_series, rule_groups
from streamgauge.grafana.alerts.settings import Settings
from streamgauge.grafana.alerts.yamltext import dump
from streamgauge.model.observations import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from streamgauge.model.query import Query

EVENTS = ROOT / "tests" / "data" / "events" / "4.3.0"
FAST = Settings({"baseline_slice": 60.0}, 1 / 60)  # what is evaluated once per hour comes too
NEEDED = set(needed_series(Export()))


class SeeingDriver(QuietDriver):
    """A driver whose queries wait for data."""

    def poll_query(self, query: Query) -> QueryStatus:
        """Nothing runs, nothing waits."""
        return QueryStatus(
            query_id=query.query_id,
            run_id=query.run_id,
            at=time.time(),
            trigger_active=False,
            data_available=False,
            phase="waiting_for_data",
        )


@contextlib.contextmanager
def serve(driver: QuietDriver, *more: str) -> Iterator[str]:
    """An agent that was told of real batches of several queries, and more; where its page is."""
    settings = {"app": "shop", "metrics_address": "127.0.0.1:0", "watch_seconds": 0.2}
    agent = Agent(make_config({**settings, "log_level": "off"}), driver=driver)
    agent.start()
    for path in sorted(EVENTS.glob("progress-*.json")):
        progress = json.loads(path.read_text())["progress"]
        started = {name: progress[name] for name in ("id", "runId", "name", "timestamp")}
        feed(agent, json.dumps(started), path.read_text())
    feed(agent, *more)
    try:
        assert agent.server
        yield agent.server.address.removeprefix("http://")
    finally:
        agent.close()


@contextlib.contextmanager
def prometheus(folder: Path, target: str, groups: list[dict[str, Any]]) -> Iterator[str]:
    """A real Prometheus with these rules, once it has scraped the agent and evaluated them all."""
    (folder / "rules.json").write_text(json.dumps({"groups": groups}))
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
        "rule_files": ["rules.json"],
        "scrape_configs": [{"job_name": "spark", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(dump(config))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = Program(
        folder,
        program("prometheus"),
        f"{url}/-/ready",
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    server.start()
    try:
        wait_until(lambda: evaluated_twice(url), "a scrape, and every rule evaluated after it")
        yield url
    finally:
        server.stop()


def evaluated_twice(url: str) -> bool:
    """Whether the recorded series are there, and every rule was evaluated after they were."""
    path = "/api/v1/query?query=query:streamgauge_alerting:info"
    if not get_json(url + path)["data"]["result"]:
        return False
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))

    def all_after() -> bool:
        found = [r for g in get_json(f"{url}/api/v1/rules")["data"]["groups"] for r in g["rules"]]
        return all(rule["lastEvaluation"] > stamp for rule in found)

    return bool(wait_until(all_after, "every rule"))


def test_check_is_fine_where_everything_is(tmp_path, capsys):
    """Exit status 0; what may be absent is named, is absent, and not held against it."""
    groups = rule_groups(Export(FAST))
    with serve(SeeingDriver()) as target, prometheus(tmp_path, target, groups) as url:
        status = rules("check", url, "--json")
        found = json.loads(capsys.readouterr().out)
        assert status == 0, found
        assert rules("check", url) == 0
        have = set(get_json(f"{url}/api/v1/label/__name__/values")["data"])
    assert set(found["conditional"]) == NEEDED - have
    assert set(found["conditional"]) < set(CONDITIONAL)
    assert (found["checked_series"], found["checked_rules"]) == (len(NEEDED), len(alert_names()))
    text = capsys.readouterr().out
    assert f"checked: whether the {len(NEEDED)} series that the rules need are there" in text
    assert f"whether the {len(alert_names())} alerts are loaded" in text
    assert "streamgauge_checkpoint_shared, only where the checkpoint can be read" in text


def test_check_names_a_missing_series_and_who_needs_it(tmp_path, capsys):
    """Exit status 1, with the alerts that rest on it: here nobody looks at the driver."""
    groups = rule_groups(Export(FAST))
    with serve(QuietDriver()) as target, prometheus(tmp_path, target, groups) as url:
        assert rules("check", url, "--json") == 1
    missing = json.loads(capsys.readouterr().out)["missing"]
    assert missing == {"streamgauge_query_data_available": ["SparkStreamCommitsStalled"]}


def test_check_names_rules_that_are_not_loaded_or_fail(tmp_path, capsys):
    """Exit status 1 for both, and Prometheus' own words for the rule that fails."""
    gone = disabled_names(["BatchOverrun", "QueryFailed"])
    broken = "streamgauge_query_info * on (app) streamgauge_query_info"
    fails = {"alert": "SparkStreamQueryFailed", "expr": broken}
    groups = rule_groups(Export(FAST, disabled=gone))
    groups.append({"name": "broken", "interval": "500ms", "rules": [fails]})
    with serve(SeeingDriver()) as target, prometheus(tmp_path, target, groups) as url:
        assert rules("check", url) == 1
    text = capsys.readouterr().out
    assert "not loaded: SparkStreamBatchOverrun" in text
    assert "fails: SparkStreamQueryFailed: found duplicate series" in text
    assert all(f"not loaded: {name}\n" not in text for name in set(alert_names()) - gone)


def test_page_is_annotated_by_a_real_prometheus(tmp_path):
    """What Prometheus itself makes of the templates: numbers, a time, and nothing left open."""
    life = Life("refunds")
    events = (life.started(), life.progress(), life.terminated("java.lang.Error: no"))
    groups = rule_groups(Export(FAST))
    began = time.time()
    with serve(SeeingDriver(), *events) as target, prometheus(tmp_path, target, groups) as url:

        def said() -> list[dict[str, str]]:
            found = get_json(f"{url}/api/v1/alerts")["data"]["alerts"]
            return [one["annotations"] for one in found if one["labels"].get("query") == "refunds"]

        (page,) = wait_until(said, "an alert")
    assert "committed is 0;" in page["description"]
    assert page["reason"] == "Error: no"
    assert not any("<error" in text or "<no value>" in text for text in page.values()), page
    assert began - 1 < time_of(page["since"]) < time.time()


def test_check_does_not_miss_what_was_left_out(tmp_path):
    """`--disable` means the same for the check as for the export."""
    groups = rule_groups(Export(FAST, disabled=disabled_names(["QueryStalled"])))
    with serve(SeeingDriver()) as target, prometheus(tmp_path, target, groups) as url:
        assert rules("check", url) == 1
        assert rules("check", url, "--disable", "QueryStalled") == 0


def test_check_looks_with_the_selector(tmp_path):
    """A selector that matches no series leaves every rule without its series, and that is found."""
    groups = rule_groups(Export(FAST))
    with serve(SeeingDriver()) as target, prometheus(tmp_path, target, groups) as url:
        assert rules("check", url, "--selector", 'job="spark"') == 0
        assert rules("check", url, "--selector", 'env="prod"') == 1
