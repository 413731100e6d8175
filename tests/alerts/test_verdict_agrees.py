"""One history through both: the agent's verdict, and the shipped rules on what the agent serves."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from promtool import RuleTest, annotations_of, rules_of, run, run_raw
from rule_checks import said
from rule_worlds import HOUR, MINUTE, notation
from stage import apply_to

from streamgauge.config import make_config
from streamgauge.exporters.metrics.collector import PrometheusExporter
from streamgauge.grafana.alerts.settings import Settings
from streamgauge.model.application import Application
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import QueryStatus, RunDetails, Tasks
from streamgauge.model.stats import Stats
from streamgauge.model.update import Update
from streamgauge.model.verdict import RESTART_WINDOW_SECONDS, RESTARTS, judge

if TYPE_CHECKING:
    from collections.abc import Callable

STEP = 30
IDS = {
    "id": "11111111-1111-1111-1111-111111111111",
    "runId": "22222222-2222-2222-2222-222222222222",
}
BEGIN = 20 * MINUTE

pytestmark = pytest.mark.timeout(600)


def iso(at: float) -> str:
    """A time as Spark writes it."""
    text = datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


class History:
    """The agent's own fleet and page, fed by hand and scraped every thirty seconds."""

    def __init__(self, trigger_seconds: float | None = 10.0, **settings: Any) -> None:
        self.now = 0.0
        self.fleet = Fleet()
        clock = lambda: self.now  # noqa: E731
        self.page = PrometheusExporter(
            make_config({"app": "shop", **settings}),
            Stats(),
            application=lambda: Application(name="shop"),
            clock=clock,
            worker_seen_at=lambda: min(self.now, self.blocked_at),
        )
        self.batches = 0
        self.run_id = IDS["runId"]
        self.blocked_at = float("inf")
        self.columns: dict[str, list[float | None]] = {}
        self.verdicts: list[str] = []
        self.event({"name": "orders", "timestamp": iso(0), **IDS})
        ids = {"query_id": IDS["id"], "run_id": IDS["runId"]}
        trigger = "unknown" if trigger_seconds is None else "processing_time"
        apply_to(
            self.fleet,
            RunDetails(**ids, trigger=trigger, trigger_seconds=trigger_seconds, idle_seconds=10.0),
            0.0,
        )

    def event(self, content: dict) -> None:
        """An event of Spark's."""
        event = decode(json.dumps(content))
        query = apply_to(self.fleet, event, self.now)
        if query is not None:
            self.export(query, event)

    def export(self, query: Any, cause: Any) -> None:
        """Have the page told, as the worker does."""
        verdict = judge(query, self.now)
        self.page.export(Update(at=self.now, cause=cause, query=query, verdict=verdict))

    def start(self) -> None:
        """Another run."""
        self.run_id = str(uuid.UUID(int=int(self.now)))
        self.event({**self.ids, "name": "orders", "timestamp": iso(self.now)})

    def fail(self) -> None:
        """The run ends with an error."""
        error = {"exception": "org.apache.spark.SparkException: x", "errorClassOnException": "X"}
        self.event({**self.ids, **error})

    def stop(self) -> None:
        """The run ends without an error."""
        self.event({**self.ids, "exception": None, "errorClassOnException": None})

    @property
    def ids(self) -> dict[str, str]:
        """The ids of the present run."""
        return {"id": IDS["id"], "runId": self.run_id}

    def batch(self, seconds: float = 2.0, **rates: float) -> None:
        """A batch that ends now."""
        progress = {**self.ids, "name": "orders", "timestamp": iso(self.now - seconds), **rates}
        progress |= {"batchId": self.batches, "numInputRows": 10}
        progress |= {"durationMs": {"triggerExecution": seconds * 1000}, "stateOperators": []}
        offsets = {
            "startOffset": {"logOffset": self.batches},
            "endOffset": {"logOffset": self.batches + 1},
        }
        progress["sources"] = [
            {"description": "FileStreamSource[x]", "numInputRows": 10, **offsets}
        ]
        progress["sink"] = {"description": "ForeachBatchSink", "numOutputRows": -1}
        self.batches += 1
        self.event({"progress": progress})

    def idle(self) -> None:
        """A trigger without work."""
        self.event({**self.ids, "timestamp": iso(self.now)})

    def look(
        self,
        *,
        active: bool,
        data: bool,
        completed: int | None = None,
        waits: str = "waiting_for_data",
        jobs: int = 0,
    ) -> None:
        """What the watchdog sees; of `jobs` that the batch began all but one failed."""
        tasks = None
        if completed is not None:
            failed = max(0, jobs - 1)
            tasks = Tasks(running=1, completed=completed, failed=0, jobs=jobs, failed_jobs=failed)
        status = QueryStatus(
            query_id=IDS["id"],
            run_id=self.run_id,
            at=self.now,
            trigger_active=active,
            data_available=data,
            phase="processing" if active else waits,
            batch_id=self.batches,
            tasks=tasks,
        )
        query = apply_to(self.fleet, status)
        if query is not None:
            self.export(query, status)

    def scrape(self) -> None:
        """Keep what the page says now, and the verdict."""
        count = len(self.verdicts)
        for family in self.page.collect():
            for sample in family.samples:
                labels = ",".join(f"{k}={json.dumps(v)}" for k, v in sample.labels.items())
                key = f'{sample.name}{{job="spark",instance="driver:9465",{labels}}}'
                self.columns.setdefault(key, [None] * count).append(sample.value)
                if sample.name == "streamgauge_query_state" and sample.value == 1:
                    self.verdicts.append(sample.labels["state"])
        for column in self.columns.values():
            column.extend([None] * (len(self.verdicts) - len(column)))

    def play(self, trouble: Callable[[History, int], None], until: int) -> None:
        """Batch after batch, and from BEGIN on the trouble, with a scrape each step."""
        for t in range(0, until + 1, STEP):
            self.now = float(t)
            if t < BEGIN:
                self.batch()
                self.look(active=False, data=True)
            else:
                trouble(self, t)
            self.scrape()

    def series(self) -> list[dict[str, str]]:
        """The scrapes as promtool's input."""
        return [{"series": key, "values": notation(column)} for key, column in self.columns.items()]


def hang(history: History, _: int) -> None:
    """A batch begins and never ends; none of its tasks finishes."""
    history.look(active=True, data=True, completed=4)


def crawl(history: History, t: int) -> None:
    """A batch begins and does not end, but a task of it finishes every minute."""
    history.look(active=True, data=True, completed=t // 60)


def retry(history: History, t: int) -> None:
    """A batch runs the same job again and again, in which tasks finish; each one fails in the end."""
    history.look(active=True, data=True, completed=t // 60, jobs=(t - BEGIN) // 60)


def doze(history: History, _: int) -> None:
    """There is nothing to do."""
    history.idle()
    history.look(active=False, data=False)


def wait(history: History, t: int) -> None:
    """A trigger of half an hour: a batch of five minutes after each; over Connect no task is seen."""
    age = (t - BEGIN) % (30 * MINUTE)
    if age == 0:
        history.batch()
    busy = age >= 25 * MINUTE
    history.look(active=busy, data=True, waits="waiting_for_trigger")


@pytest.mark.parametrize(
    ("trouble", "stalls", "interval"),
    [
        (hang, True, 10.0),
        (retry, True, 10.0),
        (crawl, False, 10.0),
        (doze, False, 10.0),
        (wait, False, None),
    ],
)
def test_page_and_verdict_agree(trouble, stalls, interval, tmp_path):
    """QueryStalled and CommitsStalled fire when the verdict has been `stalled` for their `for`."""
    history = History(interval)
    history.play(trouble, until=HOUR)
    assert ("stalled" in history.verdicts) is stalls, history.verdicts
    for alert in ("SparkStreamQueryStalled", "SparkStreamCommitsStalled"):
        test = RuleTest(history.series(), STEP)
        if stalls:
            since = history.verdicts.index("stalled") * STEP
            test.expect(since + 2 * MINUTE - 2 * STEP, f'alertname="{alert}"', 0)
            test.expect(since + 2 * MINUTE + STEP, f'alertname="{alert}"', 1)
        else:
            for t in range(BEGIN, HOUR + 1, MINUTE):
                test.expect(t, f'alertname="{alert}"', 0)
        run(tmp_path, STEP, test, rules=rules_of(tmp_path, alert))


def fail(history: History, t: int) -> None:
    """It fails and stays down."""
    if t == BEGIN:
        history.fail()


def loop(history: History, t: int) -> None:
    """It fails every five minutes and is started again half a minute later."""
    age = (t - BEGIN) % (5 * MINUTE)
    if age == 0:
        history.fail()
    elif age == STEP:
        history.start()
    else:
        history.batch()


def deploy(history: History, t: int) -> None:
    """It is stopped and started again every four minutes."""
    age = (t - BEGIN) % (4 * MINUTE)
    if age == 0:
        history.stop()
    elif age == STEP:
        history.start()
    else:
        history.batch()
        history.look(active=False, data=True)


def test_clean_restarts_are_a_loop_for_neither(tmp_path):
    """Six of them within half an hour: no verdict and no page."""
    history = History()
    history.play(deploy, until=HOUR)
    assert "restarting" not in history.verdicts
    test = RuleTest(history.series(), STEP)
    for t in range(BEGIN, HOUR + 1, MINUTE):
        test.expect(t, 'alertname="SparkStreamRestartLoop"', 0)
    run(tmp_path, STEP, test, rules=rules_of(tmp_path, "SparkStreamRestartLoop"))


def fall_behind(history: History, _: int) -> None:
    """More arrives than is processed; no source tells its backlog."""
    history.batch(STEP, inputRowsPerSecond=20.0, processedRowsPerSecond=10.0)
    history.look(active=False, data=True)


def block(history: History, _: int) -> None:
    """The agent's worker does not come back."""
    history.blocked_at = float(BEGIN)


@pytest.mark.parametrize(
    ("trouble", "alert", "words"),
    [
        (fail, "QueryFailed", "X: x"),
        (hang, "QueryStalled", "tasks run, none finishes"),
        (block, "AgentBlind", "worker"),
    ],
    ids=["failed", "stalled", "blind"],
)
def test_page_carries_the_words_of_the_verdict(trouble, alert, words, tmp_path):
    """From the agent's own page through the shipped rule into the annotation."""
    history = History()
    history.play(trouble, until=HOUR)
    name = f"SparkStream{alert}"
    wrong = {
        "eval_time": f"{HOUR}s",
        "alertname": name,
        "exp_alerts": [{"exp_labels": {"no": "x"}}],
    }
    group = {**RuleTest(history.series(), STEP).as_dict(), "alert_rule_test": [wrong]}
    done = run_raw(tmp_path, STEP, [group], rules_of(tmp_path, name))
    (page,) = (one for one in annotations_of(done.stdout + done.stderr) if "summary" in one)
    assert words in said(page, "reason"), page


@pytest.mark.parametrize(
    ("trouble", "verdict", "alert", "hold"),
    [
        (fail, "failed", "QueryFailed", "failed_for"),
        (loop, "restarting", "RestartLoop", None),
        (fall_behind, "falling_behind", "FallingBehind", "trend_for"),
        (block, "blind", "AgentBlind", "blind_for"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_alert_follows_the_verdict(trouble, verdict, alert, hold, tmp_path):
    """The alert fires once the verdict has held for its `for`, not before, and only with it."""
    history = History()
    history.play(trouble, until=90 * MINUTE)
    since = history.verdicts.index(verdict) * STEP
    wait = int(Settings().value(hold)) if hold else 0
    # Where the backlog is unknown, the verdict must hold for half a window first: it may flicker.
    more = int(Settings().value("trend_window")) if alert == "FallingBehind" else 0
    test = RuleTest(history.series(), STEP)
    name = f'alertname="SparkStream{alert}"'
    test.expect(since + wait - STEP, name, 0)
    test.expect(since + wait + more + STEP, name, 1)
    run(tmp_path, STEP, test, rules=rules_of(tmp_path, f"SparkStream{alert}"))


def test_verdict_and_rules_count_restarts_alike():
    """A loop is the same number of starts in the same time."""
    assert Settings().value("restart_count") == RESTARTS
    assert Settings().value("restart_window") == RESTART_WINDOW_SECONDS


@pytest.mark.parametrize(
    ("own", "fires"),
    [
        ({}, 1),
        ({"thresholds": {"freshness_seconds": 2400}}, 0),
        ({"alerting": False}, 0),
        ({"team": "search", "tier": "2"}, 1),
    ],
)
def test_settings_of_a_query_reach_its_pages(own, fires, tmp_path):
    """Threshold, opt-out and owner: from the agent's settings over its page into the shipped rule."""
    history = History(team="payments", queries={"orders": own})
    history.play(hang, until=HOUR)
    alert = "SparkStreamFreshnessBudgetBurn/1h"
    name, _, variant = alert.partition("/")
    owner = f'team="{own.get("team", "payments")}",tier="{own.get("tier", "")}"'
    test = RuleTest(history.series(), STEP)
    test.expect(HOUR, f'alertname="{name}",variant="{variant}",{owner}', fires)
    run(tmp_path, STEP, test, rules=rules_of(tmp_path, alert))
