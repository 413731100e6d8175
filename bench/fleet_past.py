"""What the shipped rules look back at, and a past for it."""

from __future__ import annotations

import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import figures  # noqa: F401 - finds the stage
from fleet_copies import AGENTS, fill, make_template
from fleet_drivers import STARTED
from past import Past

from streamgauge.grafana.alerts.prometheus import Export, rule_groups

SCRAPE = 15
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = r"(\d+[smhdw])"
_LOOKED_AT = re.compile(
    r"(?P<name>[a-z_:0-9]*streamgauge_\w[\w:]*)(?:\{[^}]*\})?"
    rf"(?:\[(?P<range>{_SPAN})(?::\w*)?\])?(?:(?: \^ 2)?\)\[(?P<outer>{_SPAN}):\w*\])?"
    rf"(?: offset (?P<offset>{_SPAN}))?"
)


def seconds(text: str | None) -> int:
    """A duration of Prometheus' with one unit; nothing is 0."""
    return int(text[:-1]) * UNITS[text[-1]] if text else 0


def intervals() -> dict[str, int]:
    """How often each group of the shipped rules is evaluated."""
    return {group["name"]: seconds(group["interval"]) for group in rule_groups(Export())}


def windows() -> dict[str, int]:
    """How far some rule looks back at each series, by name: ranges and offset together."""
    found: dict[str, int] = {}
    for group in rule_groups(Export()):
        for match in (m for rule in group["rules"] for m in _LOOKED_AT.finditer(rule["expr"])):
            length = sum(seconds(match[part]) for part in ("range", "outer", "offset"))
            found[match["name"]] = max(found.get(match["name"], 0), length)
    return {name: length for name, length in found.items() if length}


def steps() -> dict[str, int]:
    """Seconds between two samples of each recorded series."""
    return {
        rule["record"]: seconds(group["interval"])
        for group in rule_groups(Export())
        for rule in group["rules"]
        if "record" in rule
    }


def give_past(series: list[dict[str, Any]], drivers: int, folder: Path, until: float) -> Past:
    """A block with what rules look back at, for each driver what its original has."""
    past, looked_at, recorded = Past(until), windows(), steps()
    named: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in series:
        if one["metric"]["__name__"] in looked_at:
            named[one["metric"]["__name__"]].append(one)
    for name, many in sorted(named.items()):
        step = recorded.get(name, SCRAPE)
        count = max(2, int(looked_at[name] / step))
        kinds: dict[float, list[dict[str, str]]] = defaultdict(list)
        for one in many:
            value = float(one["value"][1])
            kinds[value if value in {0, 1, STARTED} else 2.0].extend(copies(one["metric"], drivers))
        for value, labels in kinds.items():
            past.add(labels, shape(name, value, count), step)
    past.write(folder)
    return past


def copies(labels: dict[str, str], drivers: int) -> Iterator[dict[str, str]]:
    """The labels as each driver has them whose page is a copy of this one."""
    number = re.search(r"app-(\d{4})", json.dumps(labels))
    if number is None:
        yield labels
        return
    template = make_template("\2".join(labels.values()))
    for copy in range(int(number[1]) % AGENTS, drivers, AGENTS):
        yield dict(zip(labels, fill(template, copy).split("\2"), strict=True))


def shape(name: str, now: float, count: int) -> list[float]:
    """Values such as the series has: some stand, a counter climbs, a watermark moves, a duration wavers."""
    if now in {0, 1, STARTED}:
        return [now] * count
    if name.endswith(("_total", "_sum", "_count")):
        return [n / count for n in range(count)]
    if "watermark" in name or "event_time" in name:
        return [time.time() - SCRAPE * n for n in range(count, 0, -1)]
    chance = random.Random(name)
    return [now + chance.random() / 10 for _ in range(count)]
