"""Label matchers as PromQL has them, checked before they are written into every rule."""

from __future__ import annotations

import re

from .settings import RuleSettingsError

_MATCHER = re.compile(
    r"""\s*(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)\s*
    (?P<operator>=~|!~|!=|=)\s*
    (?P<value>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)\s*""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:[abfnrtv\\\"']|x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
)
_UNQUOTED = re.compile(
    r"\s*(?P<label>[a-zA-Z_]\w*)\s*(?P<operator>=~|!~|!=|=)\s*(?P<value>[^\"'`,{}]+)"
)
# What Go's regular expressions have and Python's have not.
_GO_ONLY = re.compile(
    r"\\p\{\^?\w+\}|\\P\{\w+\}|\\[pP]\w|\\z|\\C|\\Q.*?\\E|\(\?[a-zA-Z-]*U[a-zA-Z-]*\)"
)
FORM = """name="value", with = != =~ or !~, several separated by commas, such as cluster="eu",env!="dev\""""


def checked_selector(text: str) -> str:
    """The matchers without outer braces and spaces; raises `RuleSettingsError` with the right form."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    matchers, at = [], 0
    while at < len(inner):
        match = _MATCHER.match(inner, at)
        if match is None:
            raise _wrong(text, inner[at:])
        at = match.end()
        if at < len(inner) and inner[at] != ",":
            raise _wrong(text, inner[at:])
        at += 1
        _check(match["label"], match["operator"], match["value"])
        matchers.append(match["label"] + match["operator"] + match["value"])
    return ",".join(matchers)


def _check(label: str, operator: str, value: str) -> None:
    """Refuse what parses and Prometheus would not take."""
    if label == "__name__":
        raise RuleSettingsError(
            "--selector can't match __name__: the rules name their series; match a label of the target"
        )
    inner = value[1:-1]
    if value[0] != "`":
        for found in re.finditer(r"\\.", inner):
            if not _ESCAPE.match(inner, found.start()):
                raise RuleSettingsError(
                    f"--selector: {value} has an escape that PromQL does not know, {found[0]};"
                    " write a backslash twice, or the value between `backquotes`"
                )
        inner = inner.replace("\\\\", "\\")
    if operator.endswith("~"):
        try:
            re.compile(_GO_ONLY.sub("x", inner))
        except re.error as error:
            raise RuleSettingsError(
                f"--selector: {value} is no regular expression: {error}"
            ) from error


def _wrong(text: str, rest: str) -> RuleSettingsError:
    words = f"--selector {text!r} is no list of label matchers, at {rest.strip()!r}"
    if found := _UNQUOTED.match(rest):
        meant = f"""{found["label"]}{found["operator"]}"{found["value"].strip()}\""""
        words += f"; did you mean {meant}?"
    else:
        words += "."
    return RuleSettingsError(f"{words} The form is {FORM}")
