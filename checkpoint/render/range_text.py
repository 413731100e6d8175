"""What a batch reads of one source, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamgauge.masking import mask

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.sources import SourceRange

MOST_PARTITIONS = 20


def describe_range(found: SourceRange) -> list[str]:
    """What a batch reads of one source, one line per partition or file."""
    if found.end is None:
        return [f"goes on after {short_text(found.start)}"]
    lines = []
    rows = "" if found.rows is None else f", {found.rows} rows"
    start = "its beginning" if found.start is None else short_text(found.start)
    lines.append(f"from {start} to {short_text(found.end)}{rows}")
    for each in found.partitions[:MOST_PARTITIONS]:
        count = "" if each.rows is None else f"  {each.rows} rows"
        lines.append(f"  {each.partition}: {each.start} → {each.end}{count}")
    if len(found.partitions) > MOST_PARTITIONS:
        lines.append(f"  … and {len(found.partitions) - MOST_PARTITIONS} partitions more")
    lines += [f"  {path}" for path in found.paths[:MOST_PARTITIONS]]
    hidden = len(found.paths) - MOST_PARTITIONS + found.paths_left_out
    if hidden > 0:
        lines.append(f"  … and {hidden} files more")
    return lines


def short_text(value: Any, most: int = 120) -> str:
    """A value's text; masked before it is cut, since a cut secret is not known as one."""
    text = mask(value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
    return text if len(text) <= most else f"{text[:most]}…"
