"""Numbers in the words of people: sizes, ages, dates, spans. And JSON with secrets masked."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import msgspec

from streamgauge.masking import mask, mask_all


def say_bytes(count: int) -> str:
    """`3.4 MB`; powers of 1000, as disks count."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def say_age(seconds: float | None) -> str:
    """`2 h 5 min ago`, in at most two units."""
    if seconds is None:
        return "age unknown"
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count and len(parts) < 2:
            parts.append(f"{count} {unit}")
    return f"{' '.join(parts) or '0 s'} ago"


def say_time(milliseconds: int | None) -> str:
    """A watermark or timestamp; 0 means that none is set yet."""
    if milliseconds is None:
        return "unknown"
    if milliseconds == 0:
        return "none yet"
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return when.strftime("%Y-%m-%d %H:%M:%S UTC")


def say_spans(spans: list[tuple[int, int]], most: int = 5) -> str:
    """`3, 7-9 and 12 more`."""
    shown = [f"{low}" if low == high else f"{low}-{high}" for low, high in spans[:most]]
    rest = f" and {len(spans) - most} more" if len(spans) > most else ""
    return ", ".join(shown) + rest


def mask_lines(text: str) -> str:
    """A text of any length with its secrets masked, line by line."""
    return "\n".join(mask(line) for line in text.split("\n"))


def to_json(value: Any) -> str:
    """A record as indented JSON; every string in it is masked, and what secret keys name."""
    plain = msgspec.to_builtins(value, str_keys=True)
    return msgspec.json.format(msgspec.json.encode(mask_all(plain)), indent=2).decode()
