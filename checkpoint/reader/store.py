"""Where a checkpoint lies: a place that can be listed and read, and nothing else.

A `Store` never writes, never follows a path out of its root and never reads more than it is asked
to. Three kinds: a local directory, anything fsspec knows (the extra `remote`), and a dict for tests.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from streamgauge.checkpoint.errors import CannotLookError, MissingFileError, RefusedError

LARGEST_FILE_BYTES = 16 * 1024 * 1024
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One name in a directory; size and time only where the listing was asked for details."""

    name: str
    is_dir: bool = False
    size: int | None = None
    modified: float | None = None


class Store(Protocol):
    """A read-only tree. Paths are relative, with `/`; `` is the root. Safe on a live checkpoint."""

    root: str

    def list(self, path: str = "", *, details: bool = False) -> list[Entry]:
        """Names in a directory, in no order; empty when there is none.

        Raises CannotLookError when it is there but can't be listed.
        """
        ...

    def read(self, path: str, limit: int = LARGEST_FILE_BYTES) -> bytes:
        """The whole of a small file.

        Raises MissingFileError, RefusedError (outside the root, too large, not a file) or
        CannotLookError.
        """
        ...

    def modified(self, path: str) -> float | None:
        """When a file was last written (seconds since 1970); None when it can't be known."""
        ...


def open_store(place: str | os.PathLike[str], **options: Any) -> Store:
    """The store of a path or URL; raises CannotLookError when nothing is there."""
    text = os.fspath(place)
    scheme = urlsplit(text).scheme
    if scheme in ("file", "local"):
        text, scheme = unquote(urlsplit(text).path), ""
    if len(scheme) > 1:  # one letter is a drive of Windows
        return RemoteStore(text, **options)
    return LocalStore(text)


def as_store(place: str | os.PathLike[str] | Store, **options: Any) -> Store:
    """The store itself, or the one of a path or URL."""
    return open_store(place, **options) if isinstance(place, (str, os.PathLike)) else place


def _check(path: str) -> str:
    """The path itself when it stays inside the root by its looks."""
    if path.startswith("/") or "\\" in path or "\0" in path or ".." in path.split("/"):
        raise RefusedError("leads out of the checkpoint, not opened", place=path)
    return path


class LocalStore:
    """A directory of this machine."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._real = os.path.realpath(root)
        if not os.path.isdir(self._real):  # noqa: PTH112 - one style of path here
            raise CannotLookError("there is no such directory", place=root)

    def list(self, path: str = "", *, details: bool = False) -> list[Entry]:
        """Names in a directory; links are listed as files and never followed."""
        try:
            with os.scandir(self._inside(path)) as found:
                return [_entry(each, details=details) for each in found]
        except OSError as error:
            if error.errno in _GONE:
                return []
            raise CannotLookError(str(error.strerror), place=path or self.root) from error

    def read(self, path: str, limit: int = LARGEST_FILE_BYTES) -> bytes:
        """Read a plain file; a pipe, a device or a link that leads out is refused."""
        try:
            handle = os.open(self._inside(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(handle, "rb") as file:  # noqa: PTH123 - opened by descriptor
                about = os.fstat(handle)
                if not stat.S_ISREG(about.st_mode):
                    raise RefusedError("is not a plain file", place=path)
                if about.st_size > limit:
                    what = f"{about.st_size} bytes are more than the {limit} read"
                    raise RefusedError(what, place=path)
                return file.read(limit + 1)[:limit]
        except OSError as error:
            if error.errno in _GONE:
                raise MissingFileError("is not there", place=path) from error
            raise CannotLookError(str(error.strerror), place=path) from error

    def modified(self, path: str) -> float | None:
        """When a file was last written, by its own directory entry."""
        try:
            return os.stat(self._inside(path), follow_symlinks=False).st_mtime  # noqa: PTH116
        except (OSError, RefusedError):
            return None

    def _inside(self, path: str) -> str:
        real = os.path.realpath(os.path.join(self._real, _check(path)))  # noqa: PTH118
        if real != self._real and not real.startswith(self._real.rstrip("/") + "/"):
            raise RefusedError("is a link that leads out of the checkpoint, not opened", place=path)
        return real


def _entry(found: os.DirEntry[str], *, details: bool) -> Entry:
    is_dir = found.is_dir(follow_symlinks=False)
    if not details:
        return Entry(found.name, is_dir)
    try:
        about = found.stat(follow_symlinks=False)
    except OSError:  # it went between the listing and now
        return Entry(found.name, is_dir)
    return Entry(found.name, is_dir, about.st_size, about.st_mtime)


class RemoteStore:
    """S3, GCS, ABFS, HDFS, HTTP: anything fsspec has a driver for. Needs the extra `remote`."""

    def __init__(self, url: str, filesystem: Any = None, **options: Any) -> None:
        try:
            import fsspec  # noqa: PLC0415 - an extra
        except ImportError as error:
            what = "needs fsspec; `pip install 'streamgauge[remote]'` brings it"
            raise CannotLookError(what, place=url) from error
        self.root = url.rstrip("/")
        try:
            if filesystem is None:
                filesystem, path = fsspec.core.url_to_fs(self.root, **options)
            else:
                path = filesystem._strip_protocol(self.root)  # noqa: SLF001 - fsspec's way
            self._files, self._base = filesystem, str(path).rstrip("/")
            there = self._files.exists(self._base) or bool(self.list())
        except (ImportError, ValueError, OSError) as error:
            raise CannotLookError(str(error), place=url) from error
        if not there:
            raise CannotLookError("there is no such directory", place=url)

    def list(self, path: str = "", *, details: bool = False) -> list[Entry]:
        """Names in a directory; sizes cost nothing here and are always given."""
        place = self._place(path)
        try:
            self._files.invalidate_cache(place)
            found = self._files.ls(place, detail=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CannotLookError(str(error), place=path or self.root) from error
        entries = [_remote_entry(each) for each in found]
        own = place.rsplit("/", 1)[-1]
        return [
            entry
            for entry in entries
            if entry.name and not (entry.name == own and _is_self(found, place))
        ]

    def read(self, path: str, limit: int = LARGEST_FILE_BYTES) -> bytes:
        """Read a small file: its size is asked for before its content."""
        place = self._place(path)
        try:
            size = self._files.size(place)
            if size is not None and size > limit:
                raise RefusedError(f"{size} bytes are more than the {limit} read", place=path)
            with self._files.open(place, "rb") as file:
                data: bytes = file.read(limit + 1)
        except FileNotFoundError as error:
            raise MissingFileError("is not there", place=path) from error
        except OSError as error:
            raise CannotLookError(str(error), place=path) from error
        if len(data) > limit:
            raise RefusedError(f"is larger than the {limit} bytes read", place=path)
        return data

    def modified(self, path: str) -> float | None:
        """When a file was last written, where the driver says it."""
        try:
            return _remote_entry(self._files.info(self._place(path))).modified
        except (OSError, RefusedError):
            return None

    def _place(self, path: str) -> str:
        return f"{self._base}/{_check(path)}".rstrip("/") if path else self._base


def _is_self(found: list[dict[str, Any]], place: str) -> bool:
    """Whether an object store listed the directory's own marker."""
    return any(str(each["name"]).rstrip("/") == place for each in found)


def _remote_entry(about: dict[str, Any]) -> Entry:
    name = str(about["name"]).rstrip("/").rsplit("/", 1)[-1]
    when: Any = (
        about.get("LastModified")
        or about.get("mtime")
        or about.get("updated")
        or about.get("created")
    )
    if hasattr(when, "timestamp"):
        when = when.timestamp()
    modified = float(when) if isinstance(when, (int, float)) else None
    return Entry(name, about.get("type") == "directory", about.get("size"), modified)


class MemoryStore:
    """A checkpoint in a dict of path to content (or only a size): for tests, users' too."""

    def __init__(
        self,
        files: dict[str, bytes | str],
        sizes: dict[str, int] | None = None,
        root: str = "memory",
    ) -> None:
        self.root = root
        self.files = {
            name: data.encode() if isinstance(data, str) else data for name, data in files.items()
        }
        self.sizes = {name: len(data) for name, data in self.files.items()} | (sizes or {})

    def list(self, path: str = "", *, details: bool = False) -> list[Entry]:
        """Names in a directory of the dict."""
        prefix = f"{_check(path)}/" if path else ""
        found: dict[str, Entry] = {}
        for name, size in self.sizes.items():
            if name.startswith(prefix):
                first, _, rest = name[len(prefix) :].partition("/")
                found[first] = Entry(first, is_dir=True) if rest else Entry(first, size=size)
        return list(found.values())

    def read(self, path: str, limit: int = LARGEST_FILE_BYTES) -> bytes:
        """The content; a file known by its size alone can't be read."""
        if _check(path) not in self.sizes:
            raise MissingFileError("is not there", place=path)
        if path not in self.files:
            raise RefusedError("only its size is known", place=path)
        if len(self.files[path]) > limit:
            raise RefusedError(f"is larger than the {limit} bytes read", place=path)
        return self.files[path]

    def modified(self, path: str) -> float | None:
        """A dict has no clock."""
        return None
