"""How one series of a query is named inside of its page."""

from __future__ import annotations

Key = tuple[str, tuple[str, ...]]  # name of a metric, values of its labels after app and query
