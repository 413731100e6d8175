"""The table of rule parameters: data that the rules, the settings and the verdict read."""

import subprocess
import sys

import pytest

from streamgauge.errors import StreamgaugeError
from streamgauge.grafana.alerts.settings import RuleSettingsError
from streamgauge.model import verdict
from streamgauge.model.thresholds import BY_NAME, PARAMETERS, PER_QUERY, default_number


def test_every_default_is_of_its_unit():
    """Text where the unit is text, else a number that is 0 or more."""
    for parameter in PARAMETERS:
        if parameter.unit == "text":
            assert isinstance(parameter.default, str), parameter
        else:
            assert default_number(parameter.name) >= 0, parameter


def test_what_a_query_overrides_is_a_number():
    """It is exported as the value of a series."""
    assert PER_QUERY
    assert not [name for name in PER_QUERY if BY_NAME[name].unit == "text"]


def test_text_is_no_number():
    """A URL used as a threshold is a mistake in the code."""
    with pytest.raises(TypeError, match="runbook_url"):
        default_number("runbook_url")


def test_verdict_reads_the_rules_parameters():
    """A restart loop is defined once."""
    assert default_number("restart_count") == verdict.RESTARTS == 3
    assert default_number("restart_window") == verdict.RESTART_WINDOW_SECONDS == 1800


def test_error_of_the_rules_is_one_of_the_package():
    """`except StreamgaugeError` catches it, and so does `except ValueError`, as ever."""
    assert issubclass(RuleSettingsError, StreamgaugeError)
    assert issubclass(RuleSettingsError, ValueError)


@pytest.mark.parametrize("module", ["streamgauge.config", "streamgauge.model.thresholds"])
def test_settings_load_no_other_folder(module):
    """Neither dashboards nor the reader of checkpoints is needed to know a threshold."""
    others = ("checkpoint", "exporters", "grafana", "listener")
    code = (
        f"import sys, {module};"
        f"print([m for m in sys.modules if m.startswith(tuple('streamgauge.' + o for o in {others!r}))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
