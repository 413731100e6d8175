"""The preview of the dashboards, in a real browser, on answers that are made up."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from browser import browse

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "grafana" / "preview"))

from preview import Preview, read_boards

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

QUERIES = 40
END = 1_800_000_000


class Answers(Preview):
    """A Prometheus in which every expression has one value for each query."""

    def get(self, path, **_):
        """The answer in the form of Prometheus' API."""
        if path == "query_exemplars":
            return []
        instant = path == "query"
        values = {"value": [END, "1"]} if instant else {"values": [[END - 60, "1"], [END, "2"]]}
        return {
            "result": [
                {"metric": {"job": "j", "app": "a", "query": f"q{number}"}, **values}
                for number in range(QUERIES if instant else 2)
            ]
        }


# Charts write on a canvas: what they write is kept in the page's title.
LISTEN = """<script>
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
  document.title += text + "|";
  return write.call(this, text, ...where);
};
</script>"""


def drawn(folder, uid):
    """The elements of a board's page after its script ran."""
    page = folder / "page.html"
    page.write_text(LISTEN + Answers("", END - 3600, END).page(read_boards()[uid], {}))
    return browse(page.as_uri(), folder, "--window-size=1600,1200", "--dump-dom")


def test_table_says_how_many_lines_it_has_no_room_for(tmp_path):
    """What is drawn and what is left make all."""
    table = re.search(
        r"Budget left, least first.+?\+(\d+) more", drawn(tmp_path, "streamgauge-slo")
    )
    assert table
    assert table[0].count("<tr>") - 1 + int(table[1]) == QUERIES


def test_charts_have_24_hours(tmp_path):
    """As the timelines beside them: 14:30, and no 2:30pm."""
    texts = re.search("<title>(.+?)</title>", drawn(tmp_path, "streamgauge-slo"))[1].split("|")
    assert any(re.fullmatch(r"\d\d:\d\d", one) for one in texts)
    assert not [one for one in texts if re.search("[ap]m$", one)]


def test_room_above_a_line_is_scaled_with_it():
    """Where the rules run faster, a limit of ten minutes and the axis that shows it both shrink."""
    board = read_boards()["streamgauge-query"]
    (panel,) = [one for one in board["panels"] if one["title"] == "Time to drain it"]
    Answers("", END - 3600, END, time_scale=1 / 60).page(board, {})
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["thresholds"]["steps"][1]["value"] == pytest.approx(10)
    assert defaults["custom"]["axisSoftMax"] == pytest.approx(11)
