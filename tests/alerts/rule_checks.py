"""Short questions to the shipped rules: does this alert fire then, what does its page say, is all silent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from promtool import RuleTest, annotations_of, rules_of, run, run_raw
from rule_worlds import Values, input_series, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from streamgauge.grafana.alerts.prometheus import Export

ANY_BUT_WATCHDOG = 'alertname!="SparkStreamWatchdog"'


def failed(values: Values) -> None:
    """The query ended with an error."""
    values["query_active"] = 0
    verdict(values, "failed")


def check(
    folder: Path,
    world: Callable[[int], Values],
    alert: str,
    at: int,
    count: int,
    *,
    labels: str = "",
    step: int = 30,
    export: Export | None = None,
) -> None:
    """At `at`, this many alerts of the name fire."""
    test = RuleTest(input_series(world, at, step), step)
    test.expect(at, f'alertname="SparkStream{alert}"{labels}', count)
    run(folder, step, test, rules=rules_of(folder, f"SparkStream{alert}", export))


def fired(
    folder: Path,
    world: Callable[[int], Values],
    alert: str,
    times: Mapping[int, int],
    *,
    step: int = 30,
    labels: str = "",
) -> None:
    """How many alerts of the name fire at each of the times; `labels` narrows them down."""
    test = RuleTest(input_series(world, max(times), step), step)
    for at, count in times.items():
        test.expect(at, f'alertname="SparkStream{alert}"{labels}', count)
    run(folder, step, test, rules=rules_of(folder, f"SparkStream{alert}"))


def page_of(
    folder: Path, world: Callable[[int], Values], alert: str, at: int, step: int = 30
) -> str:
    """The annotations of the one page at `at`; promtool prints what it did not expect."""
    name = f"SparkStream{alert}"
    wrong = {
        "eval_time": f"{at}s",
        "alertname": name.partition("/")[0],
        "exp_alerts": [{"exp_labels": {"no": "x"}}],
    }
    series = input_series(world, at, step)
    group = {**RuleTest(series, step).as_dict(), "alert_rule_test": [wrong]}
    done = run_raw(folder, step, [group], rules_of(folder, name))
    (page,) = (one for one in annotations_of(done.stdout + done.stderr) if "summary" in one)
    return page


def said(page: str, name: str) -> str:
    """One annotation of a page, as promtool printed it."""
    found = re.search(rf'[{{ ]{name}="((?:[^"\\]|\\.)*)"', page)
    assert found, page
    return found[1].replace('\\"', '"')


def check_silent(folder: Path, worlds: Mapping[str, Any], length: int, step: int) -> None:
    """Nothing but the watchdog fired at any time; the names of what fired are in the failure."""
    series = [
        one for name, world in worlds.items() for one in input_series(world, length, step, app=name)
    ]
    check_series_silent(folder, series, length, step)


def check_series_silent(
    folder: Path,
    series: list[dict[str, Any]],
    length: int,
    step: int,
    but: str = ANY_BUT_WATCHDOG,
) -> None:
    """The same of series in promtool's form; `but` says what may not fire."""
    test = RuleTest(series, step)
    window = f'ALERTS{{alertstate="firing",{but}}}[{length}s]'
    test.expectations.append(
        {
            "eval_time": f"{length}s",
            "expr": f"sum by (alertname, app) (count_over_time({window}))",
            "exp_samples": [],
        }
    )
    run(folder, step, test)
