"""The rule parameters as set for one export, and how PromQL writes them.

All durations are multiplied by one `time_scale`, so the rules that are tested in seconds are the ones
that ship in minutes and hours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamgauge.errors import StreamgaugeError
from streamgauge.model.thresholds import BY_NAME, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


class RuleSettingsError(StreamgaugeError, ValueError):
    """The rules can't be written as asked: an unknown name, or a wrong value; says what is allowed."""


@dataclass(frozen=True)
class Settings:
    """The rule parameters as set, and the scale of time. Immutable; a wrong name or value raises."""

    values: Mapping[str, float | str] = field(default_factory=dict)
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        for name in self.values:
            _known(name)
        if not self.time_scale > 0:
            raise RuleSettingsError(f"time_scale must be above 0 and is {self.time_scale}")

    def value(self, name: str) -> float | str:
        """The value of a rule parameter; seconds are already scaled."""
        parameter = _known(name)
        raw = self.values.get(name, parameter.default)
        if parameter.unit == "seconds" and isinstance(raw, (int, float)):
            return raw * self.time_scale
        return raw

    def number(self, name: str) -> str:
        """The value as PromQL writes it in an expression: plain seconds, rows, a ratio."""
        value = self.value(name)
        return value if isinstance(value, str) else f"{value:.10g}"

    def duration(self, name: str) -> str:
        """The value as PromQL writes it in a range: the largest unit that divides it."""
        value = self.value(name)
        if isinstance(value, str) or BY_NAME[name].unit != "seconds":
            raise RuleSettingsError(f"{name} is no duration and is used as one")
        return duration_text(value)


def duration_text(seconds: float) -> str:
    """Seconds in Prometheus' notation: 900 is `15m`, 0.5 is `500ms`; never less than 1 ms."""
    milliseconds = max(1, round(seconds * 1000))
    for unit, size in _UNITS_MS:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    raise AssertionError(milliseconds)  # pragma: no cover - a millisecond divides everything


def parse_settings(pairs: Iterable[str], time_scale: float = 1.0) -> Settings:
    """Read `name=value` pairs; raise RuleSettingsError with the allowed names or the wanted form."""
    values: dict[str, float | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise RuleSettingsError(f"{pair!r} is not name=value, such as stalled_seconds=600")
        values[name] = _parse(_known(name), text)
    return Settings(values, time_scale)


def _known(name: str) -> Parameter:
    if name not in BY_NAME:
        allowed = ", ".join(sorted(BY_NAME))
        raise RuleSettingsError(
            f"there is no rule parameter {name!r}; the rule parameters are: {allowed}"
        )
    return BY_NAME[name]


def _parse(parameter: Parameter, text: str) -> float | str:
    if parameter.unit == "text":
        return text
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise RuleSettingsError(
            f"{parameter.name} is a number of {parameter.unit}, 0 or more, not {text!r}"
        )
    return value
