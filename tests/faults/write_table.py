"""Write what the fault lab found into docs/alerts.md: `python tests/faults/write_table.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from streamgauge.grafana.alerts.documents import replace_part

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "artifacts" / "faults.jsonl"
HEAD = (
    "| fault | must page | must warn | may warn | paged | warned | names the cause | seconds to page"
    " | false pages |"
)


def table(results: list[dict[str, Any]]) -> str:
    """The results as Markdown; of several runs of one fault the last counts."""
    newest = {result["fault"]: result for result in results}
    rows = [
        HEAD,
        "|---|---|---|---|---|---|---|---|---|",
        *(_row(result) for result in newest.values()),
    ]
    missed = sum(len(set(r["pages"]) - set(r["paged"])) for r in newest.values())
    false = sum(r["false_pages"] for r in newest.values())
    due = sum(len(r["pages"]) for r in newest.values())
    late = sum(r["seconds"] > r["allowed"] for r in newest.values() if r["pages"])
    named = sum(_names_cause(r) for r in newest.values() if r["pages"])
    paging = sum(bool(r["pages"]) for r in newest.values())
    wrong_warnings = sum(len(_false_warnings(r)) for r in newest.values())
    wrong = sum(not as_expected(result) for result in results)
    summary = (
        f"{len(newest)} faults, {due} pages due, {due - missed} came, {late} late, {false} false,"
        f" {wrong_warnings} false warnings; {named} of {paging} pages name the true cause."
        f" {len(results)} runs came to their end, {wrong} of them otherwise than expected; of a fault that ran"
        " several times the last run is shown. Seconds are of the lab, where an hour of the rules takes a minute;"
        " in brackets the most that was allowed."
    )
    return "\n".join([summary, "", *rows])


def as_expected(result: dict[str, Any]) -> bool:
    """Every page and warning that had to come came, in time, and nothing else did."""
    paged, warned = set(result["paged"]), set(result["warned"])
    in_time = not result["pages"] or result["seconds"] <= result["allowed"]
    return (
        paged == set(result["pages"])
        and set(result["warns"]) <= warned
        and not _false_warnings(result)
        and not result["unsaid"]
        and in_time
    )


def _false_warnings(result: dict[str, Any]) -> set[str]:
    return set(result["warned"]) - {*result["warns"], *result["may_warn"]}


def _names_cause(result: dict[str, Any]) -> bool:
    return bool(result["says"]) and not result["unsaid"] and bool(result["paged"])


def _row(result: dict[str, Any]) -> str:
    def names(key: str) -> str:
        return ", ".join(result[key]) or "-"

    cause = "-"
    if result["says"]:
        words = ", ".join(f"“{words}”" for words in result["unsaid"])
        cause = f"no: {words} missing" if words else "yes"
    expected = (names("pages"), names("warns"), names("may_warn"))
    cells = (*expected, names("paged"), names("warned"), cause, seconds_of(result))
    return f"| {result['fault']} | {' | '.join(cells)} | {result['false_pages']} |"


def seconds_of(result: dict[str, Any]) -> str:
    """Seconds to the page, and the most that was allowed."""
    if result["seconds"] is None or not result["pages"]:
        return "-"
    most = f" ({result['allowed']:.1f})" if result["allowed"] is not None else ""
    return f"{result['seconds']:.1f}{most}"


def main() -> int:
    """Put the table between its markers."""
    if not RESULTS.exists():
        sys.stderr.write(f"{RESULTS} is not there; run the fault lab first: make faults\n")
        return 2
    results = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    place = ROOT / "docs" / "alerts.md"
    place.write_text(replace_part(place.read_text(), "fault lab", table(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
