"""The application is one record, swapped whole."""

import pytest

from streamgauge.model.application import UNKNOWN, Application, CurrentApplication


def test_first_name_stands_until_another_application_comes():
    """A second listener of the same application changes nothing; another application id does."""
    current = CurrentApplication(Application())
    assert current.enter("first", "app-1", "4.3.0")
    assert not current.enter("renamed", "app-1", "4.3.0")
    assert current().name == "first"
    assert current.enter("second", "app-2", None)
    assert (current().name, current().app_id, current().spark_version) == ("second", "app-2", None)


def test_setting_names_the_application_whatever_spark_calls_it():
    """The label `app` of the settings wins."""
    current = CurrentApplication(Application(name="shop"), fixed_name=True)
    current.enter("first", "app-1")
    current.observe("polled", None, None)
    assert (current().name, current().app_id) == ("shop", "app-1")


@pytest.mark.parametrize(("known", "news"), [(UNKNOWN, True), ("shop", False)])
def test_poll_names_only_an_application_without_a_name(known, news):
    """A Connect client learns its name with the first answer; later ones don't rename it."""
    current = CurrentApplication(Application(name=known))
    assert current.observe("polled", "4.3.0", "http://ui") is news
    assert current().name == ("polled" if news else known)
    assert (current().spark_version, current().ui_url) == ("4.3.0", "http://ui")


def test_names_are_cleaned():
    """A name with a line break can't forge a line of the page."""
    current = CurrentApplication(Application())
    current.enter("a\nb")
    assert "\n" not in current().name


def test_record_that_was_read_stays_as_it_was():
    """Whoever holds it is not surprised."""
    current = CurrentApplication(Application(name="first", app_id="app-1"))
    held = current()
    current.enter("second", "app-2")
    assert held.name == "first"
