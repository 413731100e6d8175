"""Gives series a past: writes one block of Prometheus' TSDB, a week in a second.

What rules cost depends on how far they look back, and nobody waits a week for a figure. Series of one metric
share their chunks here, which a database that grew by itself never has; readers don't mind, and decode as
many samples as they would. Format: prometheus/tsdb/docs/format (index v2, XOR chunks).
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

SAMPLES = 120  # in a chunk, as Prometheus has it
_ULID = "01KA0000000000000000000000"
Labels = Mapping[str, str]


class Past:
    """Series with samples at even steps up to a moment; `write` makes the block."""

    def __init__(self, until: float) -> None:
        self._until = int(until * 1000)
        self._from = self._until
        self._chunks = bytearray(struct.pack(">IBxxx", 0x85BD40DD, 1))
        self._series: list[tuple[list[tuple[str, str]], bytes, int]] = []
        self.samples = 0

    def add(self, many: Sequence[Labels], values: Sequence[float], step: float) -> None:
        """Give each of these series these values, the last of them at the end."""
        first = self._until - (len(values) - 1) * int(step * 1000)
        self._from = min(self._from, first)
        metas = bytearray()
        ended = reference = 0
        for at in range(0, len(values), SAMPLES):
            part = values[at : at + SAMPLES]
            begin = first + at * int(step * 1000)
            end = begin + (len(part) - 1) * int(step * 1000)
            place = self._keep(encode(part, begin, int(step * 1000)))
            if at == 0:
                metas += varint(begin) + uvarint(end - begin) + uvarint(place)
            else:
                metas += uvarint(begin - ended) + uvarint(end - begin) + varint(place - reference)
            ended, reference = end, place
        count = -(-len(values) // SAMPLES)
        self._series += [(sorted(labels.items()), bytes(metas), count) for labels in many]
        self.samples += len(values) * len(many)

    def write(self, folder: Path) -> None:
        """Write the block into a database's folder."""
        block = folder / _ULID
        (block / "chunks").mkdir(parents=True)
        (block / "chunks" / "000001").write_bytes(self._chunks)
        (block / "index").write_bytes(_index(sorted(self._series)))
        meta = {
            "ulid": _ULID, "minTime": self._from, "maxTime": self._until + 1, "version": 1,
            "stats": {"numSamples": self.samples, "numSeries": len(self._series)},
            "compaction": {"level": 1, "sources": [_ULID]},
        }  # fmt: skip
        (block / "meta.json").write_text(json.dumps(meta))

    def _keep(self, chunk: bytes) -> int:
        place = len(self._chunks)
        body = b"\x01" + chunk
        self._chunks += uvarint(len(chunk)) + body + struct.pack(">I", crc32c(body))
        return place


# ---- the index ------------------------------------------------------------------------------


def _index(series: Iterable[tuple[list[tuple[str, str]], bytes, int]]) -> bytes:
    series = list(series)
    words = sorted({word for labels, _, _ in series for pair in labels for word in pair} | {""})
    number = {word: n for n, word in enumerate(words)}
    out = bytearray(struct.pack(">IB", 0xBAAAD700, 2))
    symbols = len(out)
    out += _section(struct.pack(">I", len(words)) + b"".join(_text(word) for word in words))
    postings: dict[tuple[str, str], list[int]] = defaultdict(list)
    series_begin = len(out)
    for labels, metas, count in series:
        out += b"\0" * (-len(out) % 16)
        for pair in (("", ""), *labels):
            postings[pair].append(len(out) // 16)
        names = b"".join(uvarint(number[name]) + uvarint(number[value]) for name, value in labels)
        body = uvarint(len(labels)) + names + uvarint(count) + metas
        out += uvarint(len(body)) + body + struct.pack(">I", crc32c(body))
    out += b"\0" * (-len(out) % 4)
    postings_begin = len(out)
    table = bytearray(struct.pack(">I", len(postings)))
    for (name, value), found in sorted(postings.items()):
        table += b"\x02" + _text(name) + _text(value) + uvarint(len(out))
        out += _section(struct.pack(f">I{len(found)}I", len(found), *found))
    table_begin = len(out)
    out += _section(bytes(table))
    # Nobody reads the label indices of version 2 any more; their places are the postings'.
    toc = struct.pack(
        ">6Q", symbols, series_begin, postings_begin, table_begin, postings_begin, table_begin
    )
    return bytes(out + toc + struct.pack(">I", crc32c(toc)))


def _section(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body + struct.pack(">I", crc32c(body))


def _text(word: str) -> bytes:
    raw = word.encode()
    return uvarint(len(raw)) + raw


# ---- a chunk --------------------------------------------------------------------------------


def encode(values: Sequence[float], begin: int, step: int) -> bytes:
    """A chunk of samples at even steps, as Gorilla would write it."""
    bits: list[str] = []
    raw = [struct.unpack(">Q", struct.pack(">d", value))[0] for value in values]
    head = struct.pack(">H", len(values)) + varint(begin) + struct.pack(">Q", raw[0])
    if len(values) == 1:
        return head
    head += uvarint(step)
    window: tuple[int, int] | None = None
    for n in range(1, len(raw)):
        if n > 1:
            bits.append("0")  # the delta of the delta
        changed = raw[n] ^ raw[n - 1]
        if not changed:
            bits.append("0")
            continue
        text = f"{changed:064b}"
        leading, trailing = (
            min(31, len(text) - len(text.lstrip("0"))),
            len(text) - len(text.rstrip("0")),
        )
        if window and leading >= window[0] and trailing >= window[1]:
            bits.append("10" + text[window[0] : 64 - window[1]])
            continue
        window = (leading, trailing)
        size = 64 - leading - trailing
        bits.append(f"11{leading:05b}{size & 63:06b}{text[leading : 64 - trailing]}")
    stream = "".join(bits)
    stream += "0" * (-len(stream) % 8)
    return head + int(stream, 2).to_bytes(len(stream) // 8, "big")


def uvarint(value: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def varint(value: int) -> bytes:
    """The same with a sign."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def _make_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)  # noqa: PLW2901
        table.append(value)
    return table


_TABLE = _make_table()


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF
