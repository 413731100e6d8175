"""The client's settings: read from a file, refused with a sentence, and never told to anybody."""

import pytest

from streamgauge.config import ConfigError, make_config
from streamgauge.listener.kafka.broker import BrokerError, KafkaBroker, read_properties


def test_properties_are_read(tmp_path):
    """Comments and spaces go; a value may hold an equals sign."""
    file = tmp_path / "client.properties"
    file.write_text("# brokers\n\nbootstrap.servers = a:1,b:2\n! old\nsasl.password=x=y=\n")
    assert read_properties(str(file)) == {"bootstrap.servers": "a:1,b:2", "sasl.password": "x=y="}


@pytest.mark.parametrize(
    "login",
    [
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="p\\"w";',
        "org.apache.kafka.common.security.plain.PlainLoginModule required password='p\"w' username=ann;",
    ],
)
def test_java_s_own_login_is_understood(tmp_path, login):
    """The file that Kafka's own tools take serves as it is."""
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.jaas.config={login}\n")
    assert read_properties(str(file)) == {"sasl.username": "ann", "sasl.password": 'p"w'}


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    """Which file and which line; not what is in it."""
    file = tmp_path / "client.properties"
    with pytest.raises(BrokerError, match="can't be read: No such file"):
        read_properties(str(file))
    file.write_text("bootstrap.servers=a:1\nhunter2\n")
    with pytest.raises(BrokerError, match="line 2 of") as error:
        read_properties(str(file))
    assert "hunter2" not in str(error.value)


def test_a_refused_setting_hides_its_value(tmp_path):
    """Passwords come to stand in the wrong place."""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=kafka.example:9092\nsecurity.protocol=hunter2\n")
    with pytest.raises(BrokerError, match=r"refused a setting: .*security\.protocol") as error:
        KafkaBroker(None, str(file))
    assert "hunter2" not in str(error.value)
    assert "kafka.example" not in str(error.value)


def test_the_setting_is_brokers_or_a_file_and_never_told():
    """A word alone is a slip; neither the error nor the settings' own words hold the value."""
    with pytest.raises(ConfigError, match="HOST:PORT") as error:
        make_config({"kafka": "topsecret"})
    assert "topsecret" not in str(error.value)
    assert "kafka.example" not in repr(make_config({"kafka": "kafka.example:9092"}))
