"""What the new code is, in one small JSON: the other half of a preflight.

Keys: `spark` (line), `sources`, `operators`, `conf`, `sink`, `output_mode`, `trigger`,
`async_progress`. What Spark does not tell without planning is null, and means `unknown`.
"""

from __future__ import annotations

import msgspec

from streamgauge.checkpoint.errors import CannotLookError


class SourceDescription(msgspec.Struct, frozen=True):
    """One source, in plan order. `places`: paths, topics or patterns; null when unknown."""

    kind: str
    name: str | None = None
    places: list[str] | None = None
    options: dict[str, str] = {}


class OperatorDescription(msgspec.Struct, frozen=True):
    """One stateful operator, by the name Spark's state metadata uses; types null when unknown.

    A name is null where the key is an expression and not a column.
    """

    name: str
    key_types: list[str] | None = None
    value_types: list[str] | None = None
    key_names: list[str | None] | None = None
    value_names: list[str | None] | None = None


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The new code, as far as it can be told before it is planned."""

    spark: str | None = None
    sources: list[SourceDescription] | None = None
    operators: list[OperatorDescription] | None = None
    conf: dict[str, str] = {}
    sink: str | None = None
    output: str | None = None
    output_mode: str | None = None
    trigger: str | None = None
    async_progress: bool | None = None


def load_description(data: bytes) -> Description:
    """A description from JSON; raises CannotLookError with the path of what is wrong."""
    try:
        return msgspec.json.decode(data, type=Description)
    except msgspec.MsgspecError as error:
        raise CannotLookError(f"the plan is not a description: {error}") from error


def dump_description(description: Description) -> bytes:
    """The description as JSON, for a file."""
    return msgspec.json.format(msgspec.json.encode(description), indent=2) + b"\n"
