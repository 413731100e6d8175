"""The page about traces says what the code does."""

import subprocess
import sys

from stage import ROOT
from theatre import Stage

from streamgauge.exporters.traces.attributes import TABLE
from streamgauge.model.observations import Tasks

PAGE = ROOT / "docs" / "traces.md"


def test_every_attribute_is_on_the_page():
    """Name, span and meaning, from the one table; `make docs` writes them."""
    text = PAGE.read_text(encoding="utf-8")
    for entry in TABLE:
        assert f"| `{entry.name}` | {entry.spans} | {entry.meaning} |" in text


def test_no_attribute_of_any_span_is_missing_from_the_table():
    """Starts, restarts, failures and hung batches; those of batches are tested with each event."""
    stage = Stage()
    stage.start()
    stage.learn(trigger="processing_time", trigger_seconds=1.0, checkpoint="/c", output_mode="x")
    stage.batch()
    tasks = Tasks(running=1, completed=1, failed=0)
    stage.look(after=400.0, batch_id=1, tasks=tasks, trigger_started_at=stage.now)
    stage.end("x.Y: z")
    stage.start()
    stage.batch()
    known = {entry.name for entry in TABLE}
    said = {
        name
        for span in stage.spans()
        if not span.name.startswith("batch") or span.status.description
        for name in span.attributes
    }
    assert said <= known
    told = {entry.name for entry in TABLE if entry.spans in {"start", "running"}}
    assert told <= said


def test_picture_is_drawn_from_the_trace_beside_it(tmp_path):
    """The picture of the page is what the script makes of a real trace."""
    pictures = ROOT / "docs" / "pictures"
    drawn = tmp_path / "trace.svg"
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "draw_trace.py", pictures / "trace.jsonl", drawn],
        check=True,
    )
    assert drawn.read_text() == (pictures / "trace.svg").read_text()
    assert "pictures/trace.svg" in PAGE.read_text(encoding="utf-8")
