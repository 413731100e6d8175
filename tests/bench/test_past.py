"""The past that the fleet bench gives to Prometheus is one that Prometheus reads."""

import subprocess
import sys

from stage import ROOT, program

sys.path.insert(0, str(ROOT / "bench"))
from past import Past, crc32c

UNTIL = 1_800_000_000.0


def dump(folder):
    """Every sample in a database, as promtool prints them: labels, then (value, milliseconds)."""
    (folder / "wal").mkdir()
    said = subprocess.run(
        [program("promtool"), "tsdb", "dump", str(folder)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found = {}
    for line in said.splitlines():
        labels, value, at = line.rsplit(" ", 2)
        found.setdefault(labels, []).append((float(value), int(at)))
    return found


def test_prometheus_reads_what_was_written(tmp_path):
    """Every value and moment, over many chunks: one that stands, one that climbs, one that wavers."""
    values = {
        "stands": [1.0] * 500,
        "climbs": [float(3 * n) for n in range(700)],
        "wavers": [n * 0.6180339887498949 % 1 for n in range(301)],
        "alone": [0.1],
    }
    past = Past(UNTIL)
    for name, some in values.items():
        past.add([{"__name__": name, "query": query} for query in ("a", "ü")], some, 15)
    past.write(tmp_path)
    found = dump(tmp_path)
    assert len(found) == 8
    for name, some in values.items():
        moments = [int(UNTIL * 1000) - 15_000 * n for n in reversed(range(len(some)))]
        for query in ("a", "ü"):
            labels = f'{{__name__="{name}", query="{query}"}}'
            assert found[labels] == list(zip(some, moments, strict=True))
    assert past.samples == 2 * sum(map(len, values.values()))


def test_checksum_is_castagnolis():
    """The check value of the standard."""
    assert crc32c(b"123456789") == 0xE3069283
