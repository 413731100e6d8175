"""The Spark application that the agent watches: one immutable record, swapped whole.

Whoever needs it is handed the `CurrentApplication` and asks it each time; nobody keeps a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec
from msgspec import Struct

from streamgauge.masking import clean

UNKNOWN = "unknown"


class Application(Struct, frozen=True, kw_only=True):
    """What is known of the application; what is not known is None."""

    name: str = UNKNOWN  # value of the label `app`
    app_id: str | None = None
    spark_version: str | None = None
    ui_url: str | None = None
    code_version: str | None = None  # of the user's code, as the settings say
    env: str | None = None

    @property
    def known_name(self) -> str:
        """The name; empty while it is not known."""
        return "" if self.name == UNKNOWN else self.name


class CurrentApplication:
    """Holds the application as it is now. Any thread may read it; changes are made one at a time."""

    def __init__(self, application: Application, *, fixed_name: bool = False) -> None:
        self._application = application
        self._fixed_name = fixed_name  # the settings name it, whatever Spark calls it
        self._lock = threading.Lock()

    def __call__(self) -> Application:
        """The application now."""
        return self._application

    def enter(
        self, name: str | None = None, app_id: str | None = None, spark_version: str | None = None
    ) -> bool:
        """A listener was added in a Spark application; whether anything is new.

        Its name counts if the application is another one than before, or if none is known yet.
        """

        def change(old: Application) -> Application:
            other = app_id is not None and app_id != old.app_id
            return msgspec.structs.replace(
                old,
                name=self._choose(old, name) if other or old.name == UNKNOWN else old.name,
                app_id=app_id if other else old.app_id,
                spark_version=spark_version if other else old.spark_version or spark_version,
            )

        return self._change(change)

    def observe(self, name: str | None, spark_version: str | None, ui_url: str | None) -> bool:
        """Take in what a poll of the driver found; whether the name is new.

        The name counts only while none is known: the one that an application began with stands.
        """
        before = self._application.name
        self._change(
            lambda old: msgspec.structs.replace(
                old,
                name=self._choose(old, name) if old.name == UNKNOWN else old.name,
                spark_version=spark_version or old.spark_version,
                ui_url=ui_url,
            )
        )
        return self._application.name != before

    def _choose(self, old: Application, name: str | None) -> str:
        return old.name if self._fixed_name or not name else clean(name)

    def _change(self, change: Callable[[Application], Application]) -> bool:
        with self._lock:
            before = self._application
            self._application = change(before)
            return self._application != before
