"""Enums whose members are strings: compared by identity in code, written as they are in JSON."""

from __future__ import annotations

import enum


class TextEnum(str, enum.Enum):
    """Members equal their text and print as it, on every Python version."""

    __str__ = str.__str__
