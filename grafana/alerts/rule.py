"""What a rule is, and how its text becomes PromQL.

Expressions in the table are PromQL with these marks:

    $name       a rule parameter: `15m` inside a range or after `offset`, plain seconds elsewhere
    $$name      a vector: the query's own override where the agent exports one, else the parameter
    $Q  $A      the labels of a query (job, app, query); of an application (job, app)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from streamgauge.model.thresholds import BY_NAME

if TYPE_CHECKING:
    from .settings import Settings

PREFIX = "SparkStream"
QUERY_LABELS = "job, app, query"
APP_LABELS = "job, app"
OWNER_LABELS = "team, env, tier"
# The agent's own series carry no application; the address they are scraped from tells it.
APP_OF_INSTANCE = (
    "* on (job, instance) group_left (app) max by (job, instance, app) (streamgauge_build_info)"
)
# A job that is meant to end: that its driver goes, or starts again, says nothing.
ENDS_BY_DESIGN = 'query:streamgauge_alerting:info{trigger=~"available_now|once"}'

Severity = Literal["critical", "warning", "none"]
Level = Literal["query", "app", "bare"]

_MARK = re.compile(r"(?P<before>\[|:|offset )?(?P<dollars>\${1,2})(?P<name>[A-Za-z_0-9]+)")
_TEXT_MARK = re.compile(r"(?P<minus>- )?\$(?P<name>[a-z_0-9]+)")
_SERIES = re.compile(r"(?<![\w:\"|])(?P<name>streamgauge_[a-z_0-9]+)(?P<brace>\{)?")
_NAMED = re.compile(r"\{(?P<names>__name__=~\"streamgauge_[^\"]+\")")
_USED = re.compile(r"(?<![\w:])streamgauge_[a-z_0-9]+")


@dataclass(frozen=True)
class Recording:
    """A series that is computed once for several rules, dashboards and people."""

    record: str
    expr: str
    doc: str


@dataclass(frozen=True)
class Alert:
    """One alerting rule: a row of the table that everything is written from.

    `hold` and `keep` are names of rule parameters (`for`, `keep_firing_for`). `level` says what the alert is
    about: a query (joined with its owner, silent when it opted out), an application, or bare.
    `variant` tells apart rules of one name; it becomes a label and shares the runbook. `since` is the
    series that tells when it began; where there is none, it is when the rule first found it, less the
    window (`looks_back`, a rule parameter) through all of which it was so already. With `remembered`
    the series is looked for within `memory_window`: its driver may be gone. `reason` replaces the verdict's
    reason on the page of a query.
    """

    name: str
    severity: Severity
    expr: str
    hold: str | None
    summary: str
    description: str
    impact: str
    action: str
    dashboard: str
    level: Level = "query"
    keep: str | None = None
    variant: str = ""
    since: str | None = None
    looks_back: str | None = None
    remembered: bool = False
    reason: str = ""

    @property
    def full_name(self) -> str:
        """The name that Alertmanager and the runbook know."""
        return PREFIX + self.name

    @property
    def key(self) -> str:
        """Unique in the table: the name, and the variant where there are several."""
        return f"{self.full_name}/{self.variant}" if self.variant else self.full_name


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated together, in order; `category` is the alerts' label.

    `interval` names the rule parameter that says how often. Alerts and dashboards read a recorded series
    up to five minutes after its last sample, so a group that they read is evaluated every two minutes or more often.
    """

    category: str
    recordings: tuple[Recording, ...] = ()
    alerts: tuple[Alert, ...] = ()
    interval: str = "evaluation_interval"
    part: str = ""

    @property
    def name(self) -> str:
        """The group's name in the rule file; groups of one category differ by their part."""
        return f"streamgauge.{self.category}{'-' * bool(self.part)}{self.part}"


def expand(text: str, settings: Settings, selector: str = "") -> str:
    """PromQL from the table's notation, with `selector` in every matcher of the agent's series."""

    def replace(match: re.Match[str]) -> str:
        before, name = match["before"] or "", match["name"]
        if name in ("Q", "A"):
            return before + (QUERY_LABELS if name == "Q" else APP_LABELS)
        if match["dollars"] == "$$":
            return before + _per_query(name, settings)
        return before + (settings.duration(name) if before else settings.number(name))

    return select(_MARK.sub(replace, text), selector)


def expand_text(text: str, settings: Settings) -> str:
    """An annotation with its rule parameters filled in; `$labels` and `$value` are Prometheus' own.

    A duration is written as people read it, and as a number where it is subtracted.
    """

    def replace(match: re.Match[str]) -> str:
        parameter = BY_NAME.get(match["name"])
        if parameter is None:
            return match[0]
        if parameter.unit == "seconds" and not match["minus"]:
            return settings.duration(parameter.name)
        return (match["minus"] or "") + settings.number(parameter.name)

    return _TEXT_MARK.sub(replace, text)


def _per_query(name: str, settings: Settings) -> str:
    """A threshold for each query: the agent's override, else the default."""
    return (
        f'(max by ({QUERY_LABELS}) (streamgauge_alert_threshold{{name="{name}"}})'
        f" or on ({QUERY_LABELS}) 0 * query:streamgauge_active:max + {settings.number(name)})"
    )


def select(expr: str, selector: str) -> str:
    """The expression with `selector` (`cluster="eu"`) added to each matcher of the agent's series."""
    if not selector:
        return expr
    expr = _SERIES.sub(
        lambda m: f"{m['name']}{{{selector}," if m["brace"] else f"{m['name']}{{{selector}}}", expr
    )
    return _NAMED.sub(lambda m: f"{{{selector},{m['names']}", expr)


def used_series(expr: str) -> frozenset[str]:
    """Names of the agent's own series in an expression (recorded ones have a colon)."""
    return frozenset(_USED.findall(expr))


def own(alert: Alert, expr: str) -> str:
    """The expression joined with who owns the query, and without the queries that opted out."""
    if alert.level == "bare":
        return expr
    labels, info = (
        (QUERY_LABELS, "query:streamgauge_alerting:info")
        if alert.level == "query"
        else (APP_LABELS, "app:streamgauge_owner:info")
    )
    body = "\n".join(f"  {line}" for line in expr.splitlines())
    return f"(\n{body}\n)\n* on ({labels}) group_left ({OWNER_LABELS}) {info}"
