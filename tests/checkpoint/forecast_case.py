"""One case of the forecast matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecast_bases import EVERY, Place

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    base: str
    change: Callable[[Place], None]
    query: str | None = None
    conf: dict[str, str] | None = None
    run: dict[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = EVERY
    quick: bool = False
    active: str | None = None

    @property
    def id(self) -> str:
        """Its name in the table."""
        return f"{self.base}: {self.name}"
