"""A finding of a preflight: a difference, the rule it falls under and what Spark does with it."""

from __future__ import annotations

import msgspec

from streamgauge.checkpoint.reader.text_enum import TextEnum
from streamgauge.checkpoint.restart.failures import Failure

from .differences import Difference
from .wording import say_difference


class Effect(TextEnum):
    """What a difference does to the start."""

    ALLOWED = "allowed"
    IGNORED = "ignored"
    SILENTLY_WRONG = "silently wrong"
    FAILS = "fails"
    UNKNOWN = "unknown"


class Rule(TextEnum):
    """What is compared."""

    SOURCES = "sources"
    SOURCE_COUNT = "number of sources"
    SOURCE_KIND = "kind of source"
    SOURCE_PLACE = "place of a source"
    TOPICS = "topics"
    OPERATORS = "stateful operators"
    STATE_SCHEMA = "state schema"
    STATE_KEY_SCHEMA = "state key schema"
    STATE_VALUE_SCHEMA = "state value schema"
    STATE_NAMES = "state names"
    PINNED_SETTING = "pinned setting"
    SINK = "sink"


class Finding(msgspec.Struct, frozen=True):
    """One difference: what it is about, what it does, by which rule."""

    rule: Rule
    effect: Effect
    difference: Difference
    failure: Failure | None = None

    @property
    def what(self) -> str:
        """The difference in words."""
        return say_difference(self.difference)
