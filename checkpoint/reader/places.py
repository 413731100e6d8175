"""Paths and URLs as Spark, Hadoop and people write them, made comparable. Nothing is looked up."""

from __future__ import annotations

import os


def bare_path(place: str) -> str:
    """A path or URL without its scheme: `s3a://b/x` and `s3://b/x` are both `/b/x`."""
    scheme, colon, rest = place.partition(":")
    if colon and scheme.isalnum() and len(scheme) > 1:  # one letter is a drive of Windows
        return "/" + rest.strip("/")
    return place.rstrip("/") or "/"


def is_inside(path: str, root: str) -> bool:
    """Whether a path that Spark wrote down lies under a root that a person named."""
    roots = {bare_path(root)}
    if ":" not in root:
        roots |= {os.path.abspath(root), os.path.realpath(root)}  # noqa: PTH100 - text alone
    return bare_path(path).startswith(tuple(f"{each}/" for each in roots))
