"""Which pollers the settings and the driver ask for, and what that costs those who ask for none."""

import subprocess
import sys

import pytest

from streamgauge.config import make_config
from streamgauge.listener.classic.driver import ClassicDriver
from streamgauge.listener.connect.driver import ConnectDriver
from streamgauge.listener.driver import Driver, QuietDriver
from streamgauge.listener.inbox import Inbox
from streamgauge.listener.phases import phase_of
from streamgauge.listener.pollers import make_pollers
from streamgauge.model.observations import GoneCause, Phase

CLASSIC = ClassicDriver(listeners=list)
CONNECT = ConnectDriver(lose_all=lambda _: None, wake=lambda: None)


@pytest.mark.parametrize(
    ("driver", "settings", "expected"),
    [
        (CLASSIC, {"checkpoint_seconds": 60}, ["CheckpointPoller"]),
        (CLASSIC, {"checkpoint_seconds": 0}, []),
        (CONNECT, {"checkpoint_seconds": 60}, []),
        (QuietDriver(), {"checkpoint_seconds": 60}, []),
        (CLASSIC, {"checkpoint_seconds": 0, "kafka": "b:9092"}, ["KafkaPoller"]),
        (CONNECT, {"kafka": "/etc/client.properties"}, ["KafkaPoller"]),
    ],
)
def test_pollers_are_those_that_can_and_shall_poll(driver, settings, expected):
    """Built, not started, and connected to nobody."""
    pollers = make_pollers(make_config(settings), driver, Inbox(10), dict, lambda *_: None)
    assert [type(poller).__name__ for poller in pollers] == expected


def test_nothing_of_kafka_is_imported_unless_asked_for():
    """A job without Kafka pays nothing for the setting."""
    code = """
import sys
from streamgauge.config import make_config
from streamgauge.listener.driver import QuietDriver
from streamgauge.listener.inbox import Inbox
from streamgauge.listener.pollers import make_pollers
make_pollers(make_config({}), QuietDriver(), Inbox(10), dict, lambda *_: None)
print([name for name in sys.modules if "kafka" in name and "model" not in name])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("driver", [CLASSIC, CONNECT, QuietDriver()])
def test_every_driver_has_all_of_the_protocol(driver):
    """So that nobody has to ask which one it is."""
    names = {name for name in vars(Driver) if not name.startswith("_")}
    assert names
    assert {name for name in names if not hasattr(driver, name)} == set()


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        ("Waiting for data to arrive", Phase.WAITING_FOR_DATA),
        ("Waiting for next trigger", Phase.WAITING_FOR_TRIGGER),
        ("Getting offsets from KafkaV2[Subscribe[t]]", Phase.OFFSETS),
        ("Processing new data", Phase.PROCESSING),
        ("Committing epoch 7", Phase.EPOCHS),
        ("Terminated with exception: s3://secret", Phase.OTHER),
    ],
)
def test_phase_is_that_of_sparks_message(message, phase):
    """By how it begins; and the word is written as its value everywhere."""
    assert phase_of(message) is phase
    assert f"{phase}" == str(phase) == phase.value == phase


def test_every_cause_of_a_loss_has_a_sentence():
    """For people; nothing decides on it."""
    assert all(cause.sentence for cause in GoneCause)
