"""A Prometheus page, read: the agent's own samples and nothing else."""

from __future__ import annotations

import re

import msgspec

PREFIX = "streamgauge_"
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}


class Sample(msgspec.Struct, frozen=True):
    """One line of a metrics page."""

    name: str
    labels: dict[str, str]
    value: str


def parse_metrics(text: str) -> list[Sample]:
    """The samples of a Prometheus page; lines that are none are left out."""
    samples = []
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found and found[1].startswith(PREFIX):
            labels = {key: _unescape(value) for key, value in _LABEL.findall(found[2] or "")}
            samples.append(Sample(found[1], labels, found[3]))
    return samples


def _unescape(value: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), value)
