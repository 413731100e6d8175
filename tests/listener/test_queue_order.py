"""Events of the main queue and of the reserve come out in order of arrival."""

from streamgauge.listener.classic.jvm_queue import Row, Taken, _parse
from streamgauge.listener.classic.queue_bridge import _merge

_LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener"


def _row(number, kind="progress"):
    return Row(number, 0, kind, "{}")


def _numbers(rows):
    return [row.number for row in rows]


def test_without_a_reserve_nothing_is_held():
    """What was taken is passed on."""
    taken = Taken([_row(1), _row(2)], [], left=7, dropped=0, stamp=0)
    assert _merge(taken, []) == (taken.main, [])


def test_an_end_from_the_reserve_follows_all_that_came_before():
    """With nothing left in the main queue there is no older event."""
    taken = Taken([_row(1), _row(2)], [_row(5, "terminated")], left=0, dropped=2, stamp=0)
    rows, held = _merge(taken, [])
    assert (_numbers(rows), held) == ([1, 2, 5], [])


def test_an_end_from_the_reserve_waits_for_older_events_in_the_main_queue():
    """The main queue holds more than one call takes."""
    end = _row(500, "terminated")
    rows, held = _merge(Taken([_row(1), _row(2)], [end], left=3, dropped=0, stamp=0), [])
    assert (_numbers(rows), held) == ([1, 2], [end])
    rows, held = _merge(Taken([_row(3), _row(4), _row(501)], [], left=1, dropped=0, stamp=0), held)
    assert (_numbers(rows), held) == ([3, 4, 500, 501], [])


def test_a_start_from_the_reserve_precedes_its_progress():
    """Progress that fits in again is newer than the start that did not fit."""
    taken = Taken([_row(1), _row(9)], [_row(8, "started")], left=4, dropped=3, stamp=0)
    assert _numbers(_merge(taken, [])[0]) == [1, 8, 9]


def test_a_start_and_an_end_in_the_reserve_keep_their_order():
    """Of a run that ended and the next one that began while the queue was full."""
    held = [_row(7, "terminated")]
    taken = Taken([], [_row(8, "started")], left=0, dropped=0, stamp=0)
    assert _numbers(_merge(taken, held)[0]) == [7, 8]


def test_lines_become_rows():
    """Counts come first; JSON may have spaces; unknown classes are known as that."""
    text = (
        "2 5 3 9000\n"
        f'2=1500 {_LISTENER}$QueryProgressEvent {{"a": "b c"}}\n'
        f"1=1000 {_LISTENER}$QueryStartedEvent {{}}\n"
        "4=2000 java.lang.String 17\n"
    )
    taken = _parse(text)
    assert taken.main == [Row(1, 1000, "started", "{}"), Row(2, 1500, "progress", '{"a": "b c"}')]
    assert taken.reserve == [Row(4, 2000, "mark", "17")]
    assert (taken.left, taken.dropped, taken.stamp) == (5, 3, 9000)
    assert taken.age_of(taken.main[0]) == 8e-6
    assert _parse("1 0 0 0\n1=0 some.Other \n").main == [Row(1, 0, "unknown", "")]
