"""The hook around `stop()`: once, the newest, and nobody else's wrapper is lost; and whose it is."""

from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from streamgauge.listener.classic.application import (
    active_context,
    describe_application,
    hook_stop,
    unhook_stop,
)
from streamgauge.listener.classic.driver import ClassicDriver
from streamgauge.listener.driver import ApplicationInfo, ApplicationStopped


class Context:
    """What is stopped."""

    def __init__(self):
        self.said = []

    def stop(self):
        self.said.append("stop")
        return "stopped"


def _hook(context, name):
    say = context.said.append
    hook_stop(context, lambda: say(f"before {name}"), lambda: say(f"after {name}"))


def test_newest_hooks_are_called_once():
    """A second agent on the same context takes the place of the first."""
    context = Context()
    _hook(context, 1)
    _hook(context, 2)
    assert context.stop() == "stopped"
    assert context.said == ["before 2", "stop", "after 2"]


def test_wrapper_of_the_user_stays():
    """Whoever wraps `stop` after us is still called when hooks are set again."""
    context = Context()
    _hook(context, 1)
    ours = context.stop

    def theirs():
        context.said.append("theirs")
        return ours()

    context.stop = theirs
    _hook(context, 2)
    context.stop()
    assert context.said == ["theirs", "before 2", "stop", "after 2"]


def test_unhooked_stop_is_plain():
    """And one that was never hooked is left alone."""
    context = Context()
    unhook_stop(context)
    _hook(context, 1)
    unhook_stop(context)
    context.stop()
    assert context.said == ["stop"]


def test_context_that_is_just_starting_is_none_yet(monkeypatch):
    """PySpark shows it before its `_jsc` is there; a poll then is no failure of the watchdog's."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", object.__new__(SparkContext))
    assert active_context() is None
    with pytest.raises(ApplicationStopped):
        ClassicDriver(listeners=list).poll_application()


def test_application_is_described():
    """By name, id and version; what can't be read is None, each by itself, and nothing is raised."""
    context = SimpleNamespace(appName="shop", applicationId="app-1", version="4.0.0")
    assert describe_application(context) == ApplicationInfo("shop", "app-1", "4.0.0")
    del context.version
    assert describe_application(context) == ApplicationInfo("shop", "app-1", None)
    assert describe_application(None) == ApplicationInfo(None, None, None)
