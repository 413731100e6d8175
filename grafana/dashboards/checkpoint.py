"""Checkpoint: what is planned, what is committed, and what a restart would find."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, TEXT, limit
from .links import QUERY_ROW
from .promql import OF_APP, QUERY, best, increase, recorded, series
from .state import SNAPSHOT_LAG

_UNREAD = "The checkpoint can't be read from the driver, or `checkpoint_seconds` is 0."
_READ = "the agent can read the checkpoint"


def _all(operation: str, name: str) -> str:
    return f"{operation} by ({QUERY}) ({series(name, chosen=OF_APP)})"


def _chart(title: str, unit: str, bad: str, *targets: Target, **more: object) -> Panel:
    settings: dict[str, object] = {"empty": _UNREAD, "condition": _READ, "width": 8} | more
    return Panel(title, "timeseries", unit, bad, targets=targets, **settings)  # type: ignore[arg-type]


CHECKPOINT_BOARD = Board(
    "checkpoint",
    "Checkpoint",
    "The checkpoints of an application as they are on disk, and one of them over time.",
    (
        Row(
            "Every checkpoint of the application",
            (
                Panel(
                    "Checkpoints, most uncommitted first",
                    "table",
                    "short",
                    "Bad is a shared checkpoint, a reset nobody planned, a finding, or batches that stay"
                    " uncommitted. Sizes are told with the setting `checkpoint_state_size`.",
                    _UNREAD,
                    (
                        Target(_all("max", "checkpoint_uncommitted_batches"), instant=True),
                        Target(_all("max", "checkpoint_last_offset_batch_id"), instant=True),
                        Target(_all("max", "checkpoint_last_commit_batch_id"), instant=True),
                        Target(
                            f"time() - {_all('max', 'checkpoint_last_commit_timestamp_seconds')}",
                            instant=True,
                        ),
                        Target(
                            f"sum by ({QUERY}) ({series('checkpoint_findings', chosen=OF_APP)})",
                            instant=True,
                        ),
                        Target(
                            f"sum by ({QUERY}) (increase({series('checkpoint_resets_total', chosen=OF_APP)}[1d]))",
                            instant=True,
                        ),
                        Target(_all("max", "checkpoint_state_bytes"), instant=True),
                        Target(_all("max", "checkpoint_shared"), instant=True),
                    ),
                    alerts=("CheckpointShared", "CheckpointReset", "DuplicateRisk"),
                    condition=_READ,
                    width=24,
                    height=14,
                    columns=(
                        *("Job", "Application", "Query", "Uncommitted", "Planned", "Committed"),
                        *("Since commit", "Findings", "Resets in 1d", "State files", "Shared"),
                    ),
                    sort=("Uncommitted",),
                    overrides=(
                        Override("^Query$", (("links", (QUERY_ROW,)), ("custom.minWidth", 130))),
                        Override("^(Application|Uncommitted)$", (("custom.minWidth", 95),)),
                        Override(
                            "^Uncommitted$",
                            (
                                ("thresholds", ((None, TEXT), (2, ORANGE))),
                                ("cell", "color-text"),
                                ("decimals", 0),
                            ),
                        ),
                        Override("^(Planned|Committed)$", (("unit", "none"), ("decimals", 0))),
                        Override("^Since commit$", (("unit", "s"),)),
                        Override("^State files$", (("unit", "bytes"),)),
                        Override(
                            "^(Findings|Resets in 1d)$",
                            (
                                ("thresholds", ((None, TEXT), (0.5, ORANGE))),
                                ("cell", "color-text"),
                                ("decimals", 0),
                            ),
                        ),
                        Override(
                            "^Shared$",
                            (
                                ("mappings", {"0": ("no", TEXT), "1": ("yes", RED)}),
                                ("cell", "color-text"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "One query",
            (
                _chart(
                    "Planned against committed",
                    "none",
                    "Batch ids in offsets/ and commits/. Bad is planned that runs ahead by more than one,"
                    " or either that falls: another checkpoint.",
                    Target(best("max", "checkpoint_last_offset_batch_id"), "planned"),
                    Target(best("max", "checkpoint_last_commit_batch_id"), "committed"),
                    Target(best("max", "last_committed_batch_id"), "committed, by events"),
                    alerts=("CommitsStalled", "CheckpointReset"),
                    axis="batch id",
                    minimum=None,
                    fill=0,
                    overrides=(
                        Override("^planned$", (("color", PURPLE),)),
                        Override("^committed$", (("color", GREEN),)),
                        Override("^committed, by events$", (("color", BLUE),)),
                    ),
                ),
                _chart(
                    "Uncommitted batches",
                    "short",
                    "A restart runs the last of them again. Bad is more than one, and one that stays.",
                    Target(best("max", "checkpoint_uncommitted_batches"), "uncommitted"),
                    alerts=("CommitsStalled", "DuplicateRisk"),
                    axis="batches",
                    overrides=(Override("^uncommitted$", (("color", BLUE),)),),
                ),
                _chart(
                    "Since the last commit",
                    "s",
                    "Age of the newest file in commits/. Bad is past the budget while data waits.",
                    Target(
                        f"time() - {best('max', 'checkpoint_last_commit_timestamp_seconds')}",
                        "newest commit file",
                    ),
                    Target(recorded("query:streamgauge_silence_budget:seconds"), "budget"),
                    alerts=("CommitsStalled",),
                    overrides=(
                        Override("^newest commit file$", (("color", BLUE),)),
                        limit("^budget$"),
                    ),
                ),
                SNAPSHOT_LAG,
                _chart(
                    "Resets and replays",
                    "short",
                    "A reset is the same name with another checkpoint. Bad is one that nobody planned.",
                    Target(increase("checkpoint_resets_total"), "resets"),
                    Target(increase("batches_replayed_total"), "replayed batches"),
                    alerts=("CheckpointReset", "DuplicateRisk"),
                    empty="The query was not seen in this time range.",
                    condition="",
                    axis="in each interval",
                    overrides=(
                        Override("^resets$", (("color", RED),)),
                        Override("^replayed batches$", (("color", ORANGE),)),
                    ),
                ),
                Panel(
                    "Findings",
                    "table",
                    "short",
                    "Rules that the names in the checkpoint break now; `streamgauge checkpoint lint` says"
                    " more. Bad is every line.",
                    "Nothing is wrong with the checkpoint, as far as its names tell.",
                    (
                        Target(
                            f"max by (query, rule) ({series('checkpoint_findings')}) == 1",
                            instant=True,
                        ),
                    ),
                    alerts=("CheckpointShared", "CheckpointReset"),
                    condition="a rule is broken",
                    width=8,
                    columns=("Query", "Rule", ""),
                    overrides=(Override("^Rule$", (("color", GREY),)),),
                ),
            ),
        ),
    ),
    many=False,
)
