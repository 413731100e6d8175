"""The fuzzer: files of real checkpoints are cut, emptied, garbled and removed.

`show`, `restart`, `lint`, `plan` and `diff` never crash, never write, and name the file that is wrong.
"""

from __future__ import annotations

import random

import pytest
from recorded_checkpoints import PACKED, packed

from streamgauge.checkpoint.audit.diff import diff
from streamgauge.checkpoint.audit.lint import lint
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.report import make_report
from streamgauge.checkpoint.reader.spark_lines import LINES
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.remedies.plan import make_plan
from streamgauge.checkpoint.render.audit_text import render_difference, render_findings
from streamgauge.checkpoint.render.forecast_text import render_forecast
from streamgauge.checkpoint.render.remedies_text import render_plan
from streamgauge.checkpoint.render.report_text import render_report
from streamgauge.checkpoint.restart.circumstances import Restart
from streamgauge.checkpoint.restart.forecast import forecast


def look(files, root="s3://lake/orders"):
    """Everything that a person would be told, as one text."""
    checkpoint = read_checkpoint(MemoryStore(files, root=root))
    report = make_report(checkpoint, 0, batches=9)
    told = [render_report(report), render_findings(lint([checkpoint]))]
    told += [
        render_forecast(forecast(checkpoint, Restart(spark=line, sink="file"))) for line in LINES
    ]
    told.append(render_plan(make_plan(checkpoint)))
    told.append(render_difference(diff(checkpoint, checkpoint, (report, report))))
    return "\n".join(told)


def garble(data: bytes) -> bytes:
    """The same length, other bytes; the same ones each time."""
    chance = random.Random(len(data))  # noqa: S311 - not a secret
    return bytes(chance.randrange(256) for _ in data) or b"\xff"


BAD_JSON = (
    b'v1\n{"conf":[1,{}],"stateUniqueIds":{"0":[]},"batchWatermarkMs":"x"}\n{"a":' + b"[" * 200
)
CHANGES = {
    "removed": lambda _: None,
    "emptied": lambda _: b"",
    "cut": lambda data: data[: len(data) // 2],
    "garbled": garble,
    "text": lambda _: b"nope\n" * 3,
    "json": lambda _: BAD_JSON,
    "huge": lambda data: data + b"9" * 100_000,
}
# Files that decide a restart: when one can't be understood, it must be named.
DECIDING = ("metadata", "offsets/3", "offsets/2", "commits/3", "sources/0/3")


@pytest.mark.parametrize("name", PACKED)
def test_no_damage_makes_it_crash(name):
    """Each file, each kind of damage, each command, each Spark line."""
    whole = packed(name)
    for file in sorted(whole):
        for what, change in CHANGES.items():
            files = dict(whole)
            data = change(files.pop(file))
            if data is not None:
                files[file] = data
            text = look(files)
            if file in DECIDING and what in ("emptied", "garbled"):
                assert file in text, f"{file} {what} is not named"


@pytest.mark.parametrize("name", [each for each in PACKED if "agg" in each or "join" in each])
def test_damaged_state_files_are_named(name):
    """An empty or missing state file of the needed version is in the forecast, by its name."""
    whole = packed(name)
    needed = [file for file in whole if file.rsplit("/", 1)[-1].startswith(("4.", "4_"))]
    assert needed
    for file in needed:
        for data in (b"", None, whole[file][:15]):
            files = {key: value for key, value in whole.items() if key != file}
            if data is not None:
                files[file] = data
            seen = forecast(read_checkpoint(MemoryStore(files)))
            assert seen.verdict == "will fail"
            assert file.rsplit(".", 1)[0] in render_forecast(seen)


@pytest.mark.parametrize("seed", range(40))
def test_many_damages_at_once(seed):
    """A handful of files damaged together, in random ways."""
    chance = random.Random(seed)  # noqa: S311 - the same damage each time
    files = dict(packed(chance.choice(PACKED)))
    for file in chance.sample(sorted(files), k=min(6, len(files))):
        data = chance.choice(list(CHANGES.values()))(files.pop(file))
        if data is not None:
            files[file] = data
    assert look(files)


@pytest.mark.timeout(30)
def test_enormous_numbers_cost_nothing():
    """A number in a name or a file never decides how long we look or how much we keep."""
    big = "9223372036854775806"
    whole = packed("4.3.0/agg-hdfs")
    line = whole["offsets/3"].decode()
    damages = [
        {"offsets/3": line.replace('"logOffset":3', f'"logOffset":{big}').encode()},
        {"offsets/3": line.replace('partitions":"2"', f'partitions":"{big}"').encode()},
        {f"commits/{big}": b"v1\n{}"},
        {f"offsets/{big}": line.encode(), f"commits/{big}": b"v1\n{}"},
        {f"sources/0/{big}": whole["sources/0/3"]},
        {f"sources/0/{big}.compact": whole["sources/0/3"]},
        {f"state/0/0/{big}.delta": b"x"},
        {
            "state/0/_metadata/metadata": whole["state/0/_metadata/metadata"].replace(
                b":2}", b":999999999}"
            )
        },
        {
            "state/0/_metadata/metadata": whole["state/0/_metadata/metadata"].replace(
                b":2}", b":1e999}"
            )
        },
    ]
    for damage in damages:
        assert look(whole | damage)
    lonely = {
        name: data for name, data in whole.items() if not name.startswith(("offsets", "commits"))
    }
    assert look(lonely | {f"commits/{big}": b"v1\n{}"})


def test_names_that_no_spark_writes():
    """Negative and enormous batches, directories where files should be, stray folders."""
    files = packed("4.3.0/agg-hdfs")
    strange = {
        "offsets/-1": b"v1\n{}\n1",
        "offsets/9223372036854775807": b"v1\n{}\n1",
        "commits/4/inside": b"x",
        "sources/what/ever": b"x",
        "state/0/0/99999999999999999999.delta": b"x",
        "state/zero/0/1.delta": b"x",
        "state/0/7/odd name/1.delta": b"x",
    }
    assert look(files | strange)
    assert look(strange)
    assert look({})
    assert look(
        {"metadata": b"[]", "offsets": b"a file", "commits": b"", "state": b"", "sources": b""}
    )
