"""Three faults with the rules as they are shipped: `make faults-unscaled`.

Scraped every 15 seconds and evaluated every 30, with the agent's own defaults. All three run at the same time,
each with a driver and a stack of its own. What came, and after how many seconds, is written into docs/alerts.md.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from lab import Lab
from results import Result, allowed_seconds, check, fill
from write_table import ROOT, as_expected, seconds_of

from streamgauge.grafana.alerts.documents import replace_part

SCRAPE = 15.0
QUIET = (
    900.0  # seconds that must stay silent after a clean stop; a driver that vanished pages in 420
)
PATIENCE = 900.0


def hung(lab: Lab) -> Result:
    """A foreachBatch that hangs."""
    lab.begin("hung")
    lab.on("hang")
    result = Result("a foreachBatch that hangs", ["QueryStalled"], may_warn=["BatchStuck"])
    result.says = ["in addBatch (sink): no task running"]
    page = lab.wait_page("QueryStalled", PATIENCE)
    budget = lab.number(lab.of("silence_budget_seconds")) or 0
    result.seconds = page["at"] - lab.broken_at
    # The batch that was under way still ends, and the next one's tasks: a second at most.
    result.allowed = allowed_seconds(lab, 1 + budget + lab.parameter("stall_for"))
    return result


def killed(lab: Lab) -> Result:
    """The driver is killed."""
    lab.begin("killed")
    lab.broken_at = time.time()
    lab.kill()
    says = ["the driver was killed"]
    result = Result("the driver killed with SIGKILL", ["QueryVanished"], says=says)
    page = lab.wait_page("QueryVanished", PATIENCE)
    result.seconds = page["at"] - lab.broken_at
    result.allowed = allowed_seconds(lab, lab.parameter("vanished_for"))
    return result


def left(lab: Lab) -> Result:
    """Everything is stopped and the process exits."""
    lab.begin("leaves")
    lab.on("exit")
    status = lab.wait_exit()
    took = time.time() - lab.broken_at
    sys.stdout.write(f"the clean stop and exit took {took:.1f} s, status {status}\n")
    time.sleep(QUIET)
    return Result("a clean stop and exit at once")


def run(fault: Callable[[Lab], Result], results: list[Result]) -> None:
    """One fault in a lab of its own; what goes wrong is in the result."""
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder), scale=1, scrape=SCRAPE) as lab:
        result = fault(lab)
        fill(lab, result)
        results.append(result)
        check(lab, result)


def table(results: list[Result]) -> str:
    """The results as Markdown."""
    rows = ["| fault | must page | paged | warned | seconds to page |", "|---|---|---|---|---|"]
    for one in sorted(results, key=lambda result: result.fault):
        cells = [", ".join(names) or "-" for names in (one.pages, one.paged, one.warned)]
        rows.append(f"| {one.fault} | {' | '.join(cells)} | {seconds_of(asdict(one))} |")
    return "\n".join(rows)


def main() -> int:
    """Run all three and write the table; 1 where one of them was not as it must be."""
    results: list[Result] = []
    faults = (left, killed, hung)
    threads = [threading.Thread(target=run, args=(fault, results)) for fault in faults]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    place = ROOT / "docs" / "alerts.md"
    text = table(results)
    sys.stdout.write(text + "\n")
    place.write_text(replace_part(place.read_text(), "unscaled faults", text))
    return 0 if len(results) == len(faults) and all(map(as_expected, map(asdict, results))) else 1


if __name__ == "__main__":
    sys.exit(main())
