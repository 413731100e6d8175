"""What a run failed with at the bottom of it: the innermost cause in the text of an exception. Pure.

Spark hands on one text. It holds Java's chain ("Caused by:"), the failed task's exception in the message of
the job's, and Python's traceback in the message of whatever carried it to the JVM, which may hold Java's
chain again. The outermost class says which way the error came; the innermost says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from streamgauge.masking import LONGEST_TEXT, mask

LONGEST_MESSAGE = 200
_LONGEST_CLASS = 100
_LONGEST_READ = 1024 * 1024
_LONGEST_WORD = 2048  # a word that is cut goes whole, as it may be a secret; one without end can't
_CUT = " … "
_CAUSED = "\nCaused by: "
_FRAME = re.compile(r"[\t ]+(?:at |\.\.\. \d)")
_FRAMES_KEPT = (40, 20, 8, 2, 0)  # at each end of a stack; fewer, until the text is short enough

_TRACEBACK = "Traceback (most recent call last):"
_DIRECT_CAUSE = "The above exception was the direct cause of the following exception:"
_WHILE_HANDLING = "During handling of the above exception, another exception occurred:"
_RETURNED = "Return Message: "  # by Python, to Py4J
_TASK = re.compile(r"\(TID \d{1,19}\)(?: \([^()\n]{0,300}\))?: ")
_HEADER = re.compile(r"(?:[\w$]{1,200}\.){0,30}([A-Za-z_][\w$]{0,200})(?:: ?|$)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]{2,99}(?:\.[A-Z0-9_]{1,99})*)\] ?")
_SQLSTATE = re.compile(r"SQLSTATE: [0-9A-Z]{5}$")


class Cause(Struct, frozen=True):
    """The innermost cause of a failure."""

    cause_class: str | None  # None: it is the failure itself, or unknown
    message: str  # its first line, at most 200 characters; may be empty


def condense(exception: str) -> str:
    """The text, short enough to be masked whole: frames go first, from the middle of each stack."""
    if len(exception) <= LONGEST_TEXT:
        return exception
    lines = _cut_between_causes(exception, _LONGEST_READ).split("\n")
    for kept in _FRAMES_KEPT:
        text = "\n".join(_drop_frames(lines, kept))
        if len(text) <= LONGEST_TEXT:
            return text
    if _CAUSED in text[len(text) - LONGEST_TEXT // 2 :]:
        return _cut_between_causes(text, LONGEST_TEXT)
    return exception[
        : LONGEST_TEXT + 1
    ]  # one more than `mask` takes: it must know that there was more


def find_cause(exception: str, error_class: str | None) -> Cause:
    """The innermost cause in a masked text; `error_class` is what the failure itself is called."""
    text = exception.strip()
    first = text.partition("\n")[0]
    outer = _split(first)
    headers = _headers(_innermost_part(text).split("\n"))
    named = [found for found in (outer, *map(_split, headers)) if found is not None]
    if not named:
        return Cause(None, one_line(_SQLSTATE.sub("", first).rstrip()))
    name = named[-1][0]
    message = next((words for _, words in reversed(named) if words), "")
    known = name == error_class or (outer is not None and name == outer[0])
    return Cause(None if known else name, one_line(message))


def one_line(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """A text as a label: masked, on one line, and no longer than that."""
    return shorten(" ".join(mask(text).split()), longest)


def shorten(text: str, longest: int) -> str:
    """Cut from the middle: how a text begins says what it is about, how it ends says why."""
    if len(text) <= longest:
        return text
    kept = longest - len(_CUT)
    return text[: kept - kept // 2] + _CUT + text[len(text) - kept // 2 :]


def _cut_between_causes(text: str, longest: int) -> str:
    """Cut from the middle, up to where a cause begins: the rest of a secret would not be known as one."""
    if len(text) <= longest:
        return text
    front, rest = text[: longest // 2], text[len(text) - longest // 2 :]
    _, cause, tail = rest.partition(_CAUSED)
    words = front[-_LONGEST_WORD:].rsplit(None, 1)[:-1]
    return "".join((front[:-_LONGEST_WORD], *words, _CUT if tail else "", cause, tail))


def _drop_frames(lines: Iterable[str], kept: int) -> Iterator[str]:
    stack: list[str] = []
    for line in (*lines, ""):
        if _FRAME.match(line):
            stack.append(line)
            continue
        if len(stack) > 2 * kept:
            dropped = len(stack) - 2 * kept
            yield from stack[:kept]
            yield f"\t... {dropped} frames"
            yield from stack[len(stack) - kept :]
        else:
            yield from stack
        stack = []
        yield line


def _innermost_part(exception: str) -> str:
    """Of Python's chained exceptions the one that the others name as their cause.

    One that was only being handled is no cause: a key that a cache does not have is looked up elsewhere.
    """
    return exception.rpartition(_WHILE_HANDLING)[2].partition(_DIRECT_CAUSE)[0]


def _headers(lines: Iterable[str]) -> Iterator[str]:
    """The lines that begin with a class, outermost first."""
    first, in_traceback, after_header = True, False, False
    for line in lines:
        header = None
        if in_traceback:
            if line[:1].strip():
                header, in_traceback = line, False
        elif first or line.startswith("Caused by: "):
            header = line.removeprefix("Caused by: ")
        elif after_header and line.startswith(": "):
            header = line[2:]
        first, after_header = first and not line.strip(), header is not None
        if header is not None:
            yield from _nested(header)
        in_traceback = in_traceback or line.endswith(_TRACEBACK)


def _nested(header: str) -> Iterator[str]:
    """A header, and those that its message holds."""
    yield header
    for inner in (header.partition(_RETURNED)[2], *_TASK.split(header, 1)[1:]):
        if inner:
            yield inner


def _split(header: str) -> tuple[str, str] | None:
    """Class and message; Spark's own name of the error where the message begins with it."""
    found = _HEADER.match(header.strip())
    if found is None or header.startswith(_TRACEBACK):
        return None
    name, message = found[1], header.strip()[found.end() :]
    condition = _CONDITION.match(message)
    if condition is not None:
        name, message = condition[1], message[condition.end() :]
    message = _TASK.split(message.partition(_TRACEBACK)[0], 1)[0]
    return name[:_LONGEST_CLASS], _SQLSTATE.sub("", message.strip()).rstrip()
