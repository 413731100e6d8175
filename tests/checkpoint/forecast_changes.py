"""What can happen to a checkpoint: files lost, emptied, cut, edited by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecast_bases import Place


def nothing(place: Place) -> None:
    """Leave the checkpoint as it is."""


def lose(*names: str) -> Callable[[Place], None]:
    """Delete these files."""
    return lambda place: place.remove(*names)


def put(name: str, text: str | bytes) -> Callable[[Place], None]:
    """Write this into the file."""
    return lambda place: place.write(name, text)


def cut(name: str, lines: int) -> Callable[[Place], None]:
    """Keep only the first lines of the file."""
    return lambda place: place.write(name, "\n".join(place.text(name).split("\n")[:lines]))


def both(*changes: Callable[[Place], None]) -> Callable[[Place], None]:
    """One change after the other."""

    def change(place: Place) -> None:
        for part in changes:
            part(place)

    return change


def replace(name: str, old: str, new: str) -> Callable[[Place], None]:
    """Edit a file by hand."""

    def change(place: Place) -> None:
        text = place.text(name)
        assert old in text, f"{old} is not in {name}"
        place.write(name, text.replace(old, new))

    return change


def latest(place: Place, log: str) -> int:
    """Newest batch of a log."""
    return max(int(path.name) for path in (place.checkpoint / log).iterdir() if path.name.isdigit())


def truncate(name: str) -> Callable[[Place], None]:
    """Keep the first 20 bytes of a file."""
    return lambda place: place.write(name, (place.checkpoint / name).read_bytes()[:20])


def lose_version(version: int) -> Callable[[Place], None]:
    """Delete the files of one state version of format v2 in partition 0."""

    def change(place: Place) -> None:
        found = list((place.checkpoint / "state/0/0").glob(f"{version}_*"))
        assert found, f"no state of version {version}"
        for path in found:
            path.unlink()

    return change
