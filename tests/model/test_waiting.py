"""What waits in files and Delta tables, and what stays unknown, on a plain folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamgauge.model.sources import delta, file
from streamgauge.model.sources.waiting import File, Place, Waiting


class Folder:
    """The files of this machine."""

    def exists(self, path):
        return Path(path).exists()

    def list(self, path):
        place = Path(path)
        if not place.is_dir():
            return None
        stats = [(each, each.stat()) for each in place.iterdir()]
        return [File(e.name, e.is_dir(), s.st_size, s.st_mtime) for e, s in stats]

    def read(self, path, most):
        text = Path(path).read_text()
        return text if len(text) <= most else None


# ---- Delta --------------------------------------------------------------------------------------


def _commit(table, version, *actions):
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    lines = actions or [{"add": {"path": "a", "size": 10, "dataChange": True}}]
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)) + "\n")


def _delta(table, version, index=-1, *, options="", start=False):
    offset = {"reservoirVersion": version, "index": index, "isStartingVersion": start}
    place = Place(path=str(table), log="", options=options)
    return delta.READER.waiting(Folder(), place, offset)


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("behind", [*range(1, 10), 1000])
def test_newest_version_is_found_in_few_questions(first, behind):
    """Any number of versions behind, in about twice its logarithm."""
    asked = []

    def exists(version):
        asked.append(version)
        return version < first + behind

    assert delta._find_newest(first, exists) == first + behind - 1
    assert len(asked) <= 2 * behind.bit_length() + 2


def test_delta_that_was_read_whole(tmp_path):
    """Who stands at a version that is not there yet has read all, if the one before is there."""
    _commit(tmp_path, 0)
    assert _delta(tmp_path, 1) == Waiting(versions=0, files=0, bytes=0)
    assert _delta(tmp_path, 5) is None  # recreated, or its log was cleaned
    assert _delta(tmp_path / "elsewhere", 0) is None


def test_delta_counts_what_is_left_of_a_version(tmp_path):
    """The index is that of the last file that was read; files only moved don't count."""
    add = [{"add": {"path": str(n), "size": 2**n, "dataChange": n != 1}} for n in range(4)]
    _commit(tmp_path, 0, {"commitInfo": {}}, *add)
    _commit(tmp_path, 1)
    assert _delta(tmp_path, 0) == Waiting(versions=2, files=4, bytes=1 + 4 + 8 + 10)
    assert _delta(tmp_path, 0, 1) == Waiting(versions=2, files=2, bytes=8 + 10)


def test_delta_tells_only_versions_where_files_are_unknown(tmp_path):
    """A snapshot, rows changed, options that leave files out, and too many commits."""
    _commit(tmp_path, 0)
    only = Waiting(versions=1)
    assert _delta(tmp_path, 0, start=True) == only
    assert _delta(tmp_path, 0, options="map(excluderegex -> x)") == only
    assert _delta(tmp_path, 0, options=None) == only
    _commit(tmp_path, 1, {"remove": {"path": "a", "dataChange": True}})
    assert _delta(tmp_path, 1) == only
    for version in range(2, 23):
        _commit(tmp_path, version)
    assert _delta(tmp_path, 3) == Waiting(versions=20, files=20, bytes=200)
    assert _delta(tmp_path, 2) == Waiting(versions=21)


# ---- files --------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    """Three files, of which two batches have read one each."""
    (tmp_path / "in").mkdir()
    (tmp_path / "log").mkdir()
    for name in "abc":
        (tmp_path / "in" / name).write_text("xyz")
    for batch, name in enumerate("ab"):
        _log(tmp_path, str(batch), (name, batch))
    return tmp_path


def _log(folder, name, *entries):
    at = (folder / "in").stat().st_mtime * 1000
    lines = [
        json.dumps({"path": f"file://{folder}/in/{path}", "timestamp": int(at), "batchId": batch})
        for path, batch in entries
    ]
    (folder / "log" / name).write_text("\n".join(["v1", *lines]))


def _file(folder, last, *, options="map(maxfilespertrigger -> 1)", path=None):
    place = Place(path=path or str(folder / "in"), log=str(folder / "log"), options=options)
    return file.READER.waiting(Folder(), place, {"logOffset": last})


def test_files_past_the_committed_offset_wait(source):
    """A batch that was planned and not committed counts as not read."""
    assert _file(source, 1) == Waiting(files=1, bytes=3)
    assert _file(source, 0) == Waiting(files=2, bytes=6)


def test_compacted_log_is_read_from_its_last_compaction(source):
    """Also one that is newer than the committed offset, or that left older entries behind."""
    _log(source, "2.compact", ("a", 0), ("b", 1), ("c", 2))
    assert _file(source, 2) == Waiting(files=0, bytes=0)
    assert _file(source, 1) == Waiting(files=1, bytes=3)
    (source / "log" / "0").unlink()
    assert _file(source, 1) == Waiting(files=1, bytes=3)


def test_files_that_spark_passes_over_dont_wait(source):
    """Hidden ones, half copied ones, and those older than maxFileAge before the newest read."""
    for name in ("_x", ".x", "x._COPYING_", "old"):
        (source / "in" / name).write_text("xyz")
    os.utime(source / "in" / "old", (1e9, 1e9))
    assert _file(source, 1) == Waiting(files=1, bytes=3)


def test_files_that_cant_be_told_are_unknown(source):
    """Options and globs that choose among files, folders in the folder, a log with a gap."""
    assert _file(source, 1, options=None) is None
    assert _file(source, 1, options="map(pathglobfilter -> *.json)") is None
    assert _file(source, 1, path=f"{source}/i*") is None
    assert _file(source, 2) is None
    assert file.READER.waiting(Folder(), Place("/in", "/log", ""), "7") is None
    (source / "else").mkdir()
    assert _file(source, 1, path=f"{source}/else") is None
    (source / "in" / "day=1").mkdir()
    assert _file(source, 1) is None
    (source / "in" / "day=1").rmdir()
    (source / "in" / "_spark_metadata").mkdir()
    assert _file(source, 1) is None
