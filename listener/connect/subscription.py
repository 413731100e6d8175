"""Our listener on the listener bus that a Connect session has in the client."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

from .patches import find_listener_bus


class Subscription:
    """A session, and our listener on it. `add` and `take_off` wait for the server."""

    def __init__(self, session: Any, listener: Any) -> None:
        self.listener = listener
        self.removed = False  # the application took our listener off
        self._session = session
        self._bus = find_listener_bus(session)

    def renew(self, listener: Any) -> None:
        """The application has added our listener again, maybe another object."""
        self.listener, self.removed = listener, False

    @property
    def known(self) -> bool:
        """Whether the bus is built as we know it; nothing is seen of any other."""
        return self._bus is not None

    def listens(self) -> bool:
        """Whether our listener is on the bus, and the bus has a thread that lives.

        True on a bus we don't know: what can't be seen is not a fault.
        """
        bus = self._bus
        if bus is None:
            return True
        thread = bus._execution_thread  # noqa: SLF001
        there = any(one is self.listener for one in bus._listener_bus)  # noqa: SLF001
        return there and thread is not None and thread.is_alive()

    def add(self) -> None:
        """Put our listener on the session (again); raises what Connect's client raises."""
        bus = self._bus
        if bus is not None:
            with bus._lock:  # noqa: SLF001
                thread = bus._execution_thread  # noqa: SLF001
                if thread is not None and not thread.is_alive():  # it died without clearing its bus
                    bus._execution_thread = None  # noqa: SLF001
                    bus._listener_bus.clear()  # noqa: SLF001
                alone = not bus._listener_bus  # noqa: SLF001
            if alone:
                self._reset_server()
        if bus is None or not self.listens():
            self._session.streams.addListener(self.listener)

    def take_off(self) -> None:
        """Do what Spark's own `remove` does, which can't be used while events come.

        It waits for the thread that hands out events while it holds the lock which that thread
        needs for the next one: neither ever ends. Raises what Connect's client raises.
        """
        bus = self._bus
        if bus is None or self.listener not in bus._listener_bus:  # noqa: SLF001
            return
        thread = bus._execution_thread  # noqa: SLF001
        if all(one is self.listener for one in bus._listener_bus):  # noqa: SLF001
            self._reset_server()
            if thread is not None:
                thread.join()
        with bus._lock:  # noqa: SLF001
            with suppress(ValueError):
                bus._listener_bus.remove(self.listener)  # noqa: SLF001
            if not bus._listener_bus:  # noqa: SLF001
                bus._execution_thread = None  # noqa: SLF001

    def handle_removal(self, listener: Any) -> bool:
        """Take our listener off for the application's own `removeListener`; False if it is not ours.

        Kept in `removed`: it differs from a bus that was cleared. For `patches.intercept_listener_removal`; runs in
        the application's thread, and does not raise, as Spark's own does not.
        """
        if listener is not self.listener:
            return False
        self.removed = True
        try:
            self.take_off()
        except Exception as error:  # noqa: BLE001 - Spark's own does not raise either
            warnings.warn(f"the listener was not removed: {error}", stacklevel=4)
        return True

    def _reset_server(self) -> None:
        """Have the server let go of its end of the stream of events, which then ends.

        Without this it refuses a new stream after one that broke.
        """
        from pyspark.sql.connect import proto  # noqa: PLC0415 - pyspark is an extra

        command = proto.Command()
        command.streaming_query_listener_bus_command.remove_listener_bus_listener = True
        self._session.client.execute_command(command)
