"""How far a query is behind one source: in rows, in seconds, and for how much longer.

A `SourceLag` is replaced whole with each batch, idle trigger or look at the source itself. What is
read is what was *committed*: the end offsets of the last batch that ended well. Pure; what depends
on the time takes it as an argument, so that a scrape sees the lag of a hung query grow.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from operator import eq, gt, sub

import msgspec
from msgspec import Struct

from .events import Progress, Source
from .sources.broker_offsets import BrokerOffsets, Positions
from .sources.history import History, begin
from .sources.marks import Marks, marks_of, project
from .sources.waiting import Waiting

_CLOSE_SECONDS = 1.0  # two answers of a broker so near each other may come in the wrong order
_COMMITS = 6
_PATIENCE, _PATIENT_GAPS = 30.0, 3  # for how long "nothing waits" is believed without a new look


class SourceLag(Struct, frozen=True, kw_only=True):
    """One source of one query, as far as its offsets tell."""

    label: str
    kind: str
    # What the last batch said.
    run_id: str = ""
    start: Marks | None = None
    end: Marks | None = None
    end_at: float = 0.0  # when that end was fixed
    batch_backlog: float | None = None  # rows between the batch's end and what it found
    fixed: bool = False
    stalled: int | None = None
    files: float | None = None
    bytes: float | None = None
    versions: float | None = None
    commits: tuple[tuple[float, int], ...] = ()  # (time, rows committed so far), of this run
    # What was seen of the source.
    waiting: Waiting | None = None  # past the committed offset, in a source that does not tell
    waiting_until: float = 0.0  # when that is too old
    history: History | None = None
    earliest: Marks | None = None
    retention: Mapping[str, float] = {}
    looked_at: float | None = None  # by the probe
    added: int = 0
    removed: int = 0
    resets: int = 0
    # What follows from both.
    backlogs: Marks | None = None
    backlog: int | None = None
    unread: Mapping[str, float | None] = {}  # topics with unread rows, and when the first came in
    gone: int = 0  # rows past the end that retention has deleted
    lost_before: int = 0

    @property
    def limited(self) -> bool | None:
        """Whether the last batch was cut short of what there was; unknown for a replayed one."""
        return None if self.batch_backlog is None else self.batch_backlog > 0

    @property
    def lost(self) -> int | None:
        """Rows deleted before they were read; unknown without the probe."""
        return None if self.looked_at is None else self.lost_before + self.gone

    @property
    def topics(self) -> frozenset[str]:
        """The topics that were read, for those who want to ask the source itself."""
        return frozenset(self.end.frame.topics) if self.end else frozenset()

    def seconds(self, now: float) -> float | None:
        """Age of the oldest row that was not read; None when the history does not reach there.

        Where all was read at the last look, rows that came in until then are taken to go on
        coming; after a while without a look that is no longer known.
        """
        if self.backlogs is None or self.history is None:
            return None
        if self.unread:
            since = _oldest(self.unread)
            return None if since is None else max(0.0, now - since)
        points = self.history.points
        if len(points) < 2:
            return None  # whether rows come in can't be told from one look
        quiet, gap = now - points[-1].at, points[-1].at - points[-2].at
        if quiet > _PATIENT_GAPS * gap + _PATIENCE:
            return None
        rate = self.history.rate_since(points[-2].at)
        return max(0.0, quiet - 1.0 / rate) if rate else 0.0

    def headroom(self, now: float) -> float | None:
        """Seconds until retention deletes a row that was not read; 0: it has. Needs the probe."""
        if self.backlogs is None or self.looked_at is None:
            return None
        if self.gone:
            return 0.0
        left = []
        for topic, keeps in self.retention.items():
            since = self.unread.get(topic, now)
            if since is None:
                return None
            left.append(keeps - (now - since))
        return max(0.0, min(left)) if left else None

    def drain(self, now: float) -> float | None:
        """Seconds until nothing waits, at the pace of the last batches; None if it never comes."""
        if self.batch_backlog is None or self.history is None or self.backlog is None:
            return None
        if not self.backlog and self.seconds(now) == 0.0:
            return 0.0
        if len(self.commits) < 3:
            return None
        (first_at, first), (last_at, last) = self.commits[0], self.commits[-1]
        pace = (last_at - first_at) / (len(self.commits) - 1)
        arriving = self.history.rate_since(first_at)
        if pace <= 0 or arriving is None or now - last_at > 3 * pace + _CLOSE_SECONDS:
            return None  # the next batch is overdue: that pace is over
        if not self.batch_backlog:
            return 0.0
        faster = (last - first) / (last_at - first_at) - arriving
        return max(0.0, self.batch_backlog / faster - (now - last_at)) if faster > 0 else None


def _oldest(unread: Mapping[str, float | None]) -> float | None:
    """When the oldest of the unread rows came in; unknown when that is unknown of one topic."""
    known = [since for since in unread.values() if since is not None]
    return min(known) if len(known) == len(unread) else None


# ---- what happens -----------------------------------------------------------------------------


def take_batch(old: SourceLag | None, source: Source, batch: Progress, *, fresh: bool) -> SourceLag:
    """A batch was committed; `fresh`: its latest offset is of this trigger, not of the run's start."""
    if old is None or old.kind != source.kind:
        old = SourceLag(label=source.label, kind=source.kind)
    asking = batch.phases.get("latest_offset", 0.0)
    at = batch.at + asking
    if at < old.end_at - _CLOSE_SECONDS:  # the driver's clock was set back
        old = msgspec.structs.replace(old, history=None, commits=())
    same_run = old.run_id == batch.run_id
    commits = old.commits if same_run else ()
    if source.reached is not None:
        commits = (*commits, (batch.ended_at, source.reached.total))[-_COMMITS:]
    lag = msgspec.structs.replace(
        old,
        run_id=batch.run_id,
        start=source.began,
        end=source.reached,
        end_at=at,
        batch_backlog=source.backlog,
        fixed=source.fixed,
        stalled=_count_stalled(source),
        files=source.files,
        bytes=source.bytes,
        versions=source.versions,
        commits=commits,
        waiting=old.waiting if same_run else None,
    )
    if source.available is not None and (fresh or not same_run):
        lag = _observe(lag, source.available, at, _CLOSE_SECONDS + asking)
    lag = _measure(lag)
    skipped = max(0, old.gone - lag.gone)
    return msgspec.structs.replace(lag, lost_before=old.lost_before + skipped)


def take_idle(lag: SourceLag, at: float) -> SourceLag:
    """A trigger at that time found nothing to read: all that there is was read."""
    if (
        lag.backlog
        or lag.end is None
        or lag.history is None
        or lag.end.frame is not lag.history.frame
    ):
        return lag
    return _measure(_observe(lag, lag.end, at, _CLOSE_SECONDS))


def take_look(lag: SourceLag, look: BrokerOffsets) -> SourceLag:
    """The source itself was asked; unchanged when the look is not of these topics, or says nothing new."""
    end, history = lag.end, lag.history
    if end is None or look.kind != lag.kind or not lag.topics <= look.topics:
        return lag
    mine = set(end.frame.keys)
    latest = {
        key: offset
        for key, offset in look.latest.items()
        if key in mine or (not lag.fixed and key[0] in end.frame.topics)
    }
    if history is not None and look.at <= history.newest.at:
        return _look_back(lag, history, latest, look.at)
    like = history.frame if history else end.frame
    seen = msgspec.structs.replace(
        lag,
        earliest=marks_of({k: v for k, v in look.earliest.items() if k in latest}, like),
        retention={t: s for t, s in look.retention.items() if t in lag.topics},
        looked_at=look.at,
    )
    marks = marks_of(latest, like)
    if marks is None:  # the topics are gone
        removed = lag.removed + (len(history.frame.keys) if history else 0)
        return _measure(msgspec.structs.replace(seen, history=None, removed=removed))
    return _measure(_observe(seen, marks, look.at, _CLOSE_SECONDS))


def weigh(
    lags: Mapping[str, SourceLag], waiting: Mapping[str, Waiting], *, until: float
) -> dict[str, SourceLag]:
    """What waits in each source was looked up; where it was not, it is unknown."""
    return {
        label: msgspec.structs.replace(lag, waiting=waiting.get(label), waiting_until=until)
        for label, lag in lags.items()
    }


def _look_back(lag: SourceLag, history: History, latest: Positions, at: float) -> SourceLag:
    """A look at the past, if all partitions were known then."""
    marks = marks_of(latest, history.frame)
    if marks is None or marks.frame is not history.frame:
        return lag
    longer = history.insert(at, marks.values)
    return lag if longer is history else _measure(msgspec.structs.replace(lag, history=longer))


# ---- what follows -----------------------------------------------------------------------------


def _observe(lag: SourceLag, latest: Marks, at: float, close: float) -> SourceLag:
    """Note how far the source reached at a time; what is older than the newest point says nothing."""
    history = lag.history
    if history is None:
        return msgspec.structs.replace(lag, history=begin(latest, at))
    if at < history.newest.at:
        return lag
    counted, known = lag, history if latest.frame is history.frame else None
    if known is None:
        counted, known = _reframe(lag, history, latest)
    if known is not None and not known.went_back(latest.values):
        return msgspec.structs.replace(counted, history=known.add(at, latest.values))
    if at - history.newest.at < close:  # the answers overtook each other
        return lag
    return msgspec.structs.replace(
        counted, history=begin(latest, at), resets=lag.resets + 1, commits=()
    )


def _reframe(lag: SourceLag, history: History, latest: Marks) -> tuple[SourceLag, History | None]:
    """Partitions came or went. A topic that lost some of its own was recreated: no history."""
    if history.frame.keys == latest.frame.keys:  # forgotten in between, and made again
        return lag, History(latest.frame, history.points)
    before, after = set(history.frame.keys), set(latest.frame.keys)
    vanished = before - after
    lag = msgspec.structs.replace(
        lag, added=lag.added + len(after - before), removed=lag.removed + len(vanished)
    )
    if any(topic in latest.frame.topics for topic, _ in vanished):
        return lag, None
    return lag, history.move(latest.frame, latest)


def _measure(lag: SourceLag) -> SourceLag:
    """What waits, and since when. A sum with an unknown part is unknown."""
    unknown = msgspec.structs.replace(lag, backlogs=None, backlog=None, unread={})
    history = lag.history
    if lag.end is None or history is None:
        return unknown
    frame, newest = history.frame, history.newest
    earliest = lag.earliest
    # A partition that is new to the query will be read from its beginning.
    read = project(
        lag.end, frame, earliest.by_key() if earliest and lag.end.frame is not frame else {}
    )
    behind = list(map(sub, newest.values, read))
    if min(behind) < 0:
        apart = abs(newest.at - lag.end_at)
        if apart == 0.0 or apart > _CLOSE_SECONDS:
            return unknown  # recreated, or nobody has looked since
        behind = [max(0, rows) for rows in behind]
    gone = lag.gone
    if earliest is not None:
        kept = project(earliest, frame, {})
        gone = sum(k - r for k, r in zip(kept, read, strict=True) if k > r)
        read = array("q", map(max, read, kept))
    unread = {
        topic: history.produced_at(read, topic)
        for topic, (low, high) in frame.topics.items()
        if any(map(gt, newest.values[low:high], read[low:high]))
    }
    backlogs = Marks(frame, behind, sum(behind))
    return msgspec.structs.replace(
        lag, backlogs=backlogs, backlog=backlogs.total, unread=unread, gone=gone
    )


def _count_stalled(source: Source) -> int | None:
    """Partitions with rows to read of which the batch read none, while it read of others."""
    start, end, latest = source.began, source.reached, source.available
    if start is None or end is None or latest is None or latest.frame is not end.frame:
        return None
    if not source.backlog:
        return None if source.backlog is None else 0
    before = project(start, end.frame, {})
    if before == end.values or not any(map(eq, before, end.values)):
        return 0
    triples = zip(before, end.values, latest.values, strict=True)
    return sum(1 for begun, ended, last in triples if begun == ended < last)
