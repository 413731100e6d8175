"""The type of a WSGI application."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

App = Callable[[dict[str, Any], Any], Iterable[bytes]]
