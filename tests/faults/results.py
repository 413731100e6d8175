"""What a fault of the lab must set off, and what it did: rows of the table in docs/alerts.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from lab import Lab
from promtool import ROOT, time_of

RESULTS = ROOT / "artifacts" / "faults.jsonl"


@dataclass
class Result:
    """One row of the table: what must page, must warn and may warn, and what did.

    `says` are the words by which the text of each page, or of each warning where nothing pages, names
    the true cause.
    """

    fault: str
    pages: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    may_warn: list[str] = field(default_factory=list)
    says: list[str] = field(default_factory=list)
    paged: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    seconds: float | None = None
    allowed: float | None = None
    false_pages: int = 0
    unsaid: list[str] = field(default_factory=list)


def keep(lab: Lab, result: Result) -> None:
    """Fill a result in, keep it for the table, and check it."""
    fill(lab, result)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")
    check(lab, result)


def fill(lab: Lab, result: Result) -> None:
    """Note what came."""
    result.paged = lab.pages()
    result.warned = sorted(lab.fired()["warning"])
    result.false_pages = len(set(result.paged) - set(result.pages))
    result.unsaid = [
        words for words in result.says if not all(words in text for text in _texts(lab, result))
    ]
    for page in lab.received():
        names = {one["labels"].get("query", "") for one in page["alerts"]}
        lab.due |= {(name, alert) for name in names for alert in result.pages}


def check(lab: Lab, result: Result) -> None:
    """Recall, false pages and warnings, the time it took, the cause named, `since` no later than the page."""
    for page in lab.received():
        for one in page["alerts"]:
            assert time_of(one["annotations"]["since"]) - lab.ahead < page["at"], one
    assert set(result.paged) == set(result.pages), f"{lab.tail()}\n{result}"
    assert set(result.warns) <= set(result.warned), result
    assert set(result.warned) <= {*result.warns, *result.may_warn}, result
    assert not result.unsaid, (result.unsaid, _texts(lab, result))
    if result.pages:
        assert result.says, f"which words name the cause? {_texts(lab, result)}"
        assert result.seconds is not None, result
        assert result.allowed is not None, result
        assert result.seconds <= result.allowed, result


def _texts(lab: Lab, result: Result) -> list[str]:
    return [text for alert in result.pages or result.warns for text in lab.texts(alert)]


def warned(lab: Lab, fault: str, *alerts: str, says: tuple[str, ...] = ()) -> None:
    """Wait for warnings that must come; nothing may page, and nothing else may warn."""
    for alert in alerts:
        lab.wait_firing(alert, deadline=180)
        if says:
            lab.wait_text(alert)
    keep(lab, Result(fault, warns=list(alerts), says=list(says)))


def allowed_seconds(lab: Lab, window: float) -> float:
    """Time from fault to page: the alert's own window, two evaluations, a scrape, and the wait."""
    evaluations = 2 * lab.parameter("evaluation_interval")
    return window + evaluations + lab.scrape + lab.parameter("group_wait")


def paged(
    lab: Lab,
    result: Result,
    window: float,
    begun: Callable[[], float] | None = None,
    deadline: float = 120,
) -> Result:
    """Wait for the page of a fault that is in, and note how long it took and might have taken.

    `begun` tells, once the page is there, when what the alert is about began: some time after the
    fault, since a stop, a start or a batch takes its time. The alert's window counts from there.
    """
    page = lab.wait_page(result.pages[0], deadline)
    result.seconds = page["at"] - lab.broken_at
    later = begun() - lab.broken_at if begun else 0.0
    result.allowed = later + allowed_seconds(lab, window)
    return result
