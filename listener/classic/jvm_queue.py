"""A Spark listener inside the JVM that keeps events in a bounded queue, without code of ours there.

The listener is composed of methods that the JDK and Spark have (`method_handles`). It runs no Python:
an event costs Spark's listener thread microseconds, also while a Python thread holds the
interpreter lock.

An event is numbered, stamped with the JVM's monotonic clock and put into the *main* queue, which keeps the order
of all events. When the main queue is full, progress and idle events are dropped and counted; started
and terminated events go to the *reserve* queue. Numbers merge the two queues again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .method_handles import MethodHandles

_SPARK = "org.apache.spark.sql.streaming"
_CLASSES = {
    f"{_SPARK}.StreamingQueryListener$Query{kind.capitalize()}Event": kind
    for kind in ("progress", "idle", "started", "terminated")
}
_DROPPABLE = ("progress", "idle")
MARK = "mark"  # the kind of a text that `JvmQueue.mark` put into the queue
UNKNOWN = "unknown"  # the kind of an object of any other class
_ARRIVED, _DROPPED = 0, 1  # places in the array of counts
# Characters per answer. Py4J's server writes 8 KiB at a time without TCP_NODELAY: a longer answer waits 40 ms
# for the client's delayed acknowledgement, for which there is time for many short ones.
_ANSWER = 7_000
_MOST_ANSWERS = 100


class Row(NamedTuple):
    """One event as it left the JVM. Rows sort in order of arrival."""

    number: int
    stamp: int  # nanoseconds of the JVM's monotonic clock, on arrival
    kind: str  # progress, idle, started, terminated, MARK, UNKNOWN
    text: str  # JSON; empty if the event could not be rendered: see `take_unrendered`


class Taken(NamedTuple):
    """What one call brought."""

    main: list[Row]
    reserve: list[Row]
    left: int  # events still in the main queue
    dropped: int  # progress and idle events that did not fit, since the queue was made
    stamp: int  # nanoseconds of the same clock when they were taken

    def age_of(self, row: Row) -> float:
        """Seconds that an event spent in the queue; no step of any wall clock changes them."""
        return max(0.0, (self.stamp - row.stamp) / 1e9)


class JvmQueue:
    """The queues, Java listeners that fill them, and one call that empties them.

    `take` is for one thread at a time; the rest is safe on any thread. Everything raises what Py4J
    raises; the constructor also where this JVM or this Spark lacks a part that is needed.
    """

    def __init__(self, gateway: Any, *, capacity: int, reserve: int, burst: int) -> None:
        handles, jvm = MethodHandles(gateway), gateway.jvm
        make_queue = jvm.java.util.concurrent.LinkedBlockingQueue
        self._main = make_queue(capacity)
        self._reserve = make_queue(reserve)
        self._unrendered = make_queue(capacity)
        # An AtomicLong can't be used: Py4J would turn it into a Python int.
        self._counts = jvm.java.util.concurrent.atomic.AtomicLongArray(2)
        self._open = jvm.java.util.concurrent.atomic.AtomicBoolean(True)
        self._make_list = jvm.java.util.ArrayList
        self._text = jvm.java.lang.StringBuilder()  # of the last `take`
        self._waits: dict[int, Any] = {}  # arguments of `take`, by milliseconds
        self._classes = {kind: handles.load(name) for name, kind in _CLASSES.items()}
        self._arrive = self._compose_arrive(handles)
        self._take = self._compose_take(handles, burst)
        interface = handles.load(f"{_SPARK}.PythonStreamingQueryListener")
        self._listener = handles.implement(interface, self._arrive)
        self._wrap = getattr(jvm, f"{_SPARK}.PythonStreamingQueryListenerWrapper")
        self._test()

    def make_listener(self) -> Any:
        """A Java listener for Spark's bus; each is another object, and all fill the same queues."""
        return self._wrap(self._listener)

    def take(self, milliseconds: int) -> Taken:
        """Wait so long for an event; take it and what else is there, up to a burst.

        One Py4J call, and more for long texts.
        """
        arguments = self._waits.get(milliseconds)
        if arguments is None:
            arguments = self._waits[milliseconds] = self._make_list()
            arguments.add(milliseconds)
        text = self._take.invokeWithArguments(arguments)
        return _parse(text if _utf16_length(text) < _ANSWER else self._read_whole(text))

    def mark(self, text: str) -> None:
        """Put a text of one line into the queue, in order with the events."""
        arguments = self._make_list()
        arguments.add(text)
        self._arrive.invokeWithArguments(arguments)

    def take_unrendered(self) -> Any:
        """The oldest Java event whose JSON failed; None if there is none."""
        return self._unrendered.poll()

    def open(self) -> None:
        """Let events in again."""
        self._open.set(True)

    def shut(self) -> None:
        """Ignore events from now on, and release the memory of those in the queues."""
        self._open.set(False)
        for queue in (self._main, self._reserve, self._unrendered):
            queue.clear()

    def _read_whole(self, first: str) -> str:
        """The text of the last `take`, of which the first answer held only the beginning."""
        length = self._text.length()
        step = _ANSWER if length <= _ANSWER * _MOST_ANSWERS else length
        starts = range(_ANSWER, length, step)
        text = first + "".join(self._text.substring(at, min(at + step, length)) for at in starts)
        # A cut may have fallen into a character of two units: then once more, in one piece.
        return text if text.isascii() else str(self._text.toString())

    def _test(self) -> None:
        """Raise unless a text comes out as it went in. It also compiles what the first event needs."""
        self.mark("test")
        rows = self.take(0).main
        if [(row.kind, row.text) for row in rows] != [(MARK, "test")]:
            raise RuntimeError(f"the queue in the JVM returned {rows} instead of a test")

    # ---- on Spark's threads ------------------------------------------------------------------

    def _compose_arrive(self, handles: MethodHandles) -> Any:
        """(Object event) → void: number it, stamp it, and put it into a queue."""
        increment = handles.bind(self._counts, "incrementAndGet", "long", "int")
        number = handles.cast(handles.insert(increment, 0, _ARRIVED), "Object")
        clock = handles.find_static("System", "nanoTime", "long")
        pair = handles.find_constructor("SimpleImmutableEntry", "Object", "Object")
        stamp = handles.pipe(handles.cast(clock, "Object"), handles.pipe(number, pair))
        entry = handles.pipe(stamp, pair)  # (Object event) → ((number, time), event)

        offer = handles.bind(self._main, "offer", "boolean", "Object")
        nothing = handles.nothing("Object")
        count = handles.cast(handles.insert(increment, 0, _DROPPED), "void")
        keep = handles.bind(self._reserve, "offer", "boolean", "Object")
        full = handles.drop(count, "Object"), handles.cast(keep, "void", "Object")
        droppable, vital = (
            handles.pipe(entry, handles.if_else(offer, nothing, otherwise)) for otherwise in full
        )
        arrive = vital
        for kind in reversed(_DROPPABLE):
            arrive = handles.if_else(handles.is_a(self._classes[kind]), droppable, arrive)
        is_open = handles.drop(handles.bind(self._open, "get", "boolean"), "Object")
        return handles.if_else(is_open, arrive, nothing)

    # ---- on the reader's thread --------------------------------------------------------------

    def _compose_take(self, handles: MethodHandles, burst: int) -> Any:
        """(long milliseconds) → String: a line with the counts, and one line per event.

        The order matters: `left` is counted last, so when it is 0 every event that is older than one
        from the reserve has been taken.
        """
        text, taken = self._text, self._make_list()
        append = handles.bind(text, "append", "StringBuilder", "Object")
        append = handles.cast(append, "void", "Object")
        space = append.bindTo(" ")
        add = handles.bind(taken, "add", "boolean", "Object")
        first = handles.if_else(
            handles.find_static("Objects", "isNull", "boolean", "Object"),
            handles.nothing("Object"),
            handles.cast(add, "void", "Object"),
        )
        drain_main = handles.bind(self._main, "drainTo", "int", "Collection", "int")
        drain_main = handles.insert(handles.insert(drain_main, 1, burst - 1), 0, taken)
        drain_reserve = handles.bind(self._reserve, "drainTo", "int", "Collection")
        drain_reserve = handles.insert(drain_reserve, 0, taken)
        count = handles.bind(taken, "size", "int")
        left = handles.bind(self._main, "size", "int")
        dropped = handles.insert(handles.bind(self._counts, "get", "long", "int"), 0, _DROPPED)
        clock = handles.find_static("System", "nanoTime", "long")
        for_each = handles.bind(taken, "forEach", "void", "Consumer")
        line = handles.as_interface("Consumer", self._compose_line(handles, append))
        rest = handles.sequence(
            handles.cast(drain_main, "void"),
            handles.insert(handles.bind(text, "setLength", "void", "int"), 0, 0),
            handles.bind(text, "trimToSize", "void"),  # bursts of long events are rare
            handles.pipe(handles.cast(count, "Object"), append),
            handles.cast(drain_reserve, "void"),
            space,
            handles.pipe(handles.cast(left, "Object"), append),
            space,
            handles.pipe(handles.cast(dropped, "Object"), append),
            space,
            handles.pipe(handles.cast(clock, "Object"), append),
            append.bindTo("\n"),
            handles.insert(for_each, 0, line),
            handles.bind(taken, "clear", "void"),
            self._compose_answer(handles),
        )
        milliseconds = handles.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        poll = handles.bind(self._main, "poll", "Object", "long", "TimeUnit")
        poll = handles.insert(poll, 1, milliseconds)
        return handles.pipe(poll, handles.sequence(first, handles.drop(rest, "Object")))

    def _compose_answer(self, handles: MethodHandles) -> Any:
        """() → String: the text, as far as it fits into one answer."""
        length = handles.bind(self._text, "length", "int")
        least = handles.find_static("Math", "min", "int", "int", "int")
        end = handles.pipe(length, handles.insert(least, 1, _ANSWER))
        substring = handles.bind(self._text, "substring", "String", "int", "int")
        return handles.pipe(end, handles.insert(substring, 0, 0))

    def _compose_line(self, handles: MethodHandles, append: Any) -> Any:
        """(Object entry) → void: append `number=stamp class json`."""
        pair = "SimpleImmutableEntry"
        key = handles.cast(handles.find(pair, "getKey", "Object"), "Object", "Object")
        value = handles.cast(handles.find(pair, "getValue", "Object"), "Object", "Object")
        class_of = handles.find("Object", "getClass", "Class")
        name = handles.pipe(class_of, handles.find("Class", "getName", "String"))
        name, json = (
            handles.pipe(value, handles.pipe(handles.cast(found, "Object", "Object"), append))
            for found in (name, self._compose_json(handles))
        )
        space, end = append.bindTo(" "), handles.drop(append.bindTo("\n"), "Object")
        return handles.sequence(handles.pipe(key, append), space, name, space, json, end)

    def _compose_json(self, handles: MethodHandles) -> Any:
        """(Object event) → String: empty for an event that throws, which is kept for `take_unrendered`."""
        render = empty = handles.drop(handles.constant(""), "Object")
        ways = [(cls, "json") for cls in self._classes.values()]
        for cls, method in [*ways, (handles.load("String"), "toString")]:
            read = handles.cast(handles.find(cls, method, "String"), "String", "Object")
            render = handles.if_else(handles.is_a(cls), read, render)
        keep = handles.bind(self._unrendered, "offer", "boolean", "Object")
        keep = handles.cast(keep, "void", "Object")
        return handles.rescue(render, handles.drop(handles.sequence(keep, empty), "Throwable"))


def _utf16_length(text: str) -> int:
    """The length as Java counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _parse(text: str) -> Taken:
    head, *lines = text.split("\n")
    count, left, dropped, stamp = map(int, head.split(" "))
    rows = [_parse_row(line) for line in lines[:-1]]
    return Taken(sorted(rows[:count]), sorted(rows[count:]), left, dropped, stamp)


def _parse_row(line: str) -> Row:
    entry, name, text = line.split(" ", 2)
    number, _, stamp = entry.partition("=")
    kind = MARK if name == "java.lang.String" else _CLASSES.get(name, UNKNOWN)
    return Row(int(number), int(stamp), kind, text)
