"""Between the worker and a collector: a bounded queue of traces and one thread that sends them.

The collector may be down, slow, or refuse; the worker never waits for it. Every span is counted
once, as exported, failed (the collector did not take it) or dropped (no room, or no time at the
end). A trace is dropped whole, never in pieces.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from streamgauge.errors import StreamgaugeError

Count = Callable[[str, int], None]  # outcome, spans
ReportError = Callable[[BaseException], None]

_GRACE_SECONDS = 0.2  # for a call that was told to give up
_NOISY = ("opentelemetry", "urllib3", "requests", "grpc")


class ExportFailed(StreamgaugeError):  # noqa: N818 - it reads as a sentence
    """The collector did not take a batch of spans; holds what the exporter said of it."""


class Outbox:
    """Takes one trace after the other, and sends them.

    Any thread may post. The exporter is made in the sending thread, so that the cost of its imports
    is paid there.
    """

    def __init__(
        self,
        make_exporter: Callable[[], SpanExporter],
        count: Count,
        report_error: ReportError,
        *,
        limit: int = 2048,
        batch: int = 512,
        delay_seconds: float = 5.0,
    ) -> None:
        self._make_exporter = make_exporter
        self._count = count
        self._report_error = report_error
        self._limit = limit
        self._batch = min(batch, limit)
        self._delay_seconds = delay_seconds
        self._queue: deque[Sequence[ReadableSpan]] = deque()
        self._queued = 0
        self._sending = 0
        self._closed = False
        self._given_up = False
        self._ready = threading.Condition(threading.Lock())
        self._exporter: SpanExporter | None = None
        self._thread = threading.Thread(target=self._run, name="streamgauge-traces", daemon=True)
        self._thread.start()

    # ---- any thread ------------------------------------------------------------------------

    def post(self, trace: Sequence[ReadableSpan]) -> None:
        """Hand a trace over; without room, or after the end, it is dropped and counted."""
        with self._ready:
            if not self._closed and self._queued + len(trace) <= self._limit:
                self._queue.append(trace)
                self._queued += len(trace)
                if self._queued >= self._batch:
                    self._ready.notify()
                return
        self._count("dropped", len(trace))
        self._report_error(
            ExportFailed(f"no room for {len(trace)} spans in a queue of {self._limit}")
        )

    def finish(self) -> None:
        """Take nothing more, and begin to send what is left; returns at once."""
        with self._ready:
            self._closed = True
            self._ready.notify()

    def close(self, seconds: float) -> None:
        """Send what is left; after so many seconds give up, and count what was not sent."""
        deadline = time.monotonic() + seconds
        self.finish()
        self._thread.join(max(0.0, seconds - _GRACE_SECONDS))
        if self._thread.is_alive() and self._exporter is not None:
            self._try(self._exporter.shutdown)  # wakes an exporter that sleeps between two tries
            self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._ready:
            left = self._queued + self._sending
            self._queue.clear()
            self._queued = self._sending = 0
            self._given_up = True
        if left:
            self._count("dropped", left)

    # ---- the sending thread ----------------------------------------------------------------

    def _run(self) -> None:
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # our own calls are not traced
        hush = _Hush(threading.get_ident())
        try:
            self._prepare()  # now: at the end of a short job there would be no time for imports
            while spans := self._take():
                hush.cover()
                error = self._send(spans, hush)
                self._settle(len(spans), error)
            if self._exporter is not None and not self._given_up:
                self._try(self._exporter.shutdown)
        finally:
            hush.lift()

    def _prepare(self) -> None:
        try:
            self._exporter = self._make_exporter()
        except Exception as error:  # noqa: BLE001 - tried again with the first spans
            self._report_error(error)

    def _take(self) -> list[ReadableSpan]:
        """Wait for enough, or for long enough; nothing means that this is the end."""
        with self._ready:
            due = time.monotonic() + self._delay_seconds
            while not self._closed and self._queued < self._batch:
                left = due - time.monotonic()
                if left <= 0 and self._queue:
                    break
                if left <= 0:
                    due = time.monotonic() + self._delay_seconds
                    continue
                self._ready.wait(left)
            spans: list[ReadableSpan] = []
            while self._queue and (not spans or len(spans) + len(self._queue[0]) <= self._batch):
                spans += self._queue.popleft()
            self._queued -= len(spans)
            self._sending = len(spans)
            return spans

    def _send(self, spans: list[ReadableSpan], hush: _Hush) -> BaseException | None:
        try:
            if self._exporter is None:
                self._exporter = self._make_exporter()
            if self._exporter.export(spans) is SpanExportResult.SUCCESS:
                return None
            return ExportFailed(hush.last or "the collector did not take the spans")
        except Exception as error:  # noqa: BLE001 - an exporter of any make
            return error

    def _settle(self, spans: int, error: BaseException | None) -> None:
        """Count what was sent, unless `close` has given it up already."""
        with self._ready:
            if self._given_up:
                return
            self._sending = 0
        self._count("failed" if error else "exported", spans)
        if error:
            self._report_error(error)

    def _try(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - cleaning up never raises
            self._report_error(error)


class _Hush(logging.Filter):
    """Keeps what exporters log from one thread, ours, out of the user's logs.

    An exporter logs each try of each batch: a dead collector would fill the log. What it said last
    goes into our own error line, once a minute. Other threads' records, levels and handlers are
    left as they are.
    """

    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread
        self._covered: dict[str, logging.Logger] = {}
        self.last = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record may pass: all but those of our thread."""
        if threading.get_ident() != self._thread:
            return True
        self.last = record.getMessage()
        return False

    def cover(self) -> None:
        """Listen on the loggers that an exporter may use; new ones come with its imports."""
        self.last = ""
        for name, logger in list(logging.root.manager.loggerDict.items()):
            if name in self._covered or not isinstance(logger, logging.Logger):
                continue
            if name.partition(".")[0] in _NOISY:
                self._covered[name] = logger
                logger.addFilter(self)

    def lift(self) -> None:
        """Leave the loggers as they were."""
        for logger in self._covered.values():
            logger.removeFilter(self)
        self._covered.clear()
