"""Settings: told what is wrong where somebody reads it, defaults where nobody does."""

import threading

import pytest
from msgspec.structs import fields

from streamgauge.config import LONGEST, Config, ConfigError, QueryConfig, make_config
from streamgauge.environment import fill_owners, load_config
from streamgauge.errors import StreamgaugeError


def test_config_error_is_of_the_packages_one_tree():
    """`except StreamgaugeError` catches it, and `except ValueError` still does."""
    assert issubclass(ConfigError, StreamgaugeError)
    assert issubclass(ConfigError, ValueError)


def test_there_are_about_twenty_settings():
    """Each is something that somebody must understand."""
    assert len(fields(Config)) <= 26
    assert not {"port", "host"} & {f.name for f in fields(Config)}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metrics_adress": "x"}, "did you mean 'metrics_address'"),
        ({"nonsense": 1}, "allowed: disabled, app"),
        ({"inbox_limit": "many"}, "inbox_limit is 'many'"),
        ({"inbox_limit": 0}, "inbox_limit is 0"),
        ({"watch_seconds": -1}, "watch_seconds is -1"),
        ({"metrics_address": "9465"}, "HOST:PORT"),
        ({"metrics_address": "127.0.0.1:99999"}, "HOST:PORT"),
        ({"linger_seconds": float("inf")}, "linger_seconds is inf"),
        ({"grace_seconds": float("nan")}, "grace_seconds is nan"),
        ({"trace_keep_seconds": float("nan")}, "trace_keep_seconds is nan"),
        ({"trace_keep_seconds": float("-inf")}, "trace_keep_seconds is -inf"),
        ({"watch_seconds": 1e12}, "watch_seconds is 1000000000000.0"),
        ({"series_limit": 10**400}, "series_limit is 1000"),
        ({"app": "caf\udcff"}, "app has 'caf"),
        ({"queries": {"\udcff": {}}}, "queries has"),
        ({"queries": {"orders": {"team": "\udcff"}}}, "team has"),
        ({"log_level": "loud"}, "debug, info, warning, error, off"),
        ({"metrics_auth_file": "f"}, "metrics_tls_cert"),
        ({"queries": {"orders": {"tem": "x"}}}, "did you mean 'team'"),
        ({"queries": {"orders": {"nonsense": 1}}}, "queries.orders has no setting 'nonsense'"),
        ({"queries": {"orders": {"nonsense": 1}}}, "allowed: team, env, tier,"),
        (
            {"queries": {"orders": {"silence_seconds": "x"}}},
            "queries.orders.silence_seconds is 'x'",
        ),
        ({"queries": {"orders": 1}}, "queries is {'orders': 1}"),
        ({"tier": True}, "tier is True"),
        ({"tier": 1.5}, "tier is 1.5"),
        ({"queries": {"orders": {"thresholds": {"late_rate": 1}}}}, "did you mean 'late_ratio'"),
        ({"queries": {"orders": {"thresholds": {"stall_for": 1}}}}, "allowed: stuck_seconds,"),
        ({"queries": {"orders": {"thresholds": {"late_ratio": -1}}}}, ">= 0"),
        (
            {"queries": {"orders": {"thresholds": {"late_ratio": float("inf")}}}},
            "late_ratio is inf",
        ),
    ],
)
def test_wrong_setting_in_code_raises(settings, words):
    """The message names the setting, the value and what is allowed."""
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        make_config(settings)


def test_environment_is_read():
    """Every field has its variable; types are parsed."""
    config, wrong = load_config(
        {},
        {
            "STREAMGAUGE_APP": "shop",
            "STREAMGAUGE_INBOX_LIMIT": "7",
            "STREAMGAUGE_SILENCE_SECONDS": "60",
            "STREAMGAUGE_DISABLED": "true",
            "STREAMGAUGE_QUERIES": '{"orders": {"team": "shop", "thresholds": {"late_ratio": 0.1}}}',
        },
    )
    assert not wrong
    assert (config.app, config.inbox_limit, config.silence_seconds) == ("shop", 7, 60.0)
    assert config.disabled
    assert config.queries["orders"].team == "shop"
    assert config.queries["orders"].thresholds == {"late_ratio": 0.1}


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, None), ("", None), ("0", 0.0), ("30", 30.0), ("2.5", 2.5)]
)
def test_linger_is_automatic_off_or_a_time(text, seconds):
    """Unset is not 0: unset waits where it is worth it, 0 never does."""
    config, wrong = load_config({}, {} if text is None else {"STREAMGAUGE_LINGER_SECONDS": text})
    assert (config.linger_seconds, wrong) == (seconds, [])
    assert load_config({"linger_seconds": 7}, {})[0].linger_seconds == 7


def test_wrong_linger_is_ignored():
    """As any other wrong variable."""
    for text in ("soon", "-1", "nan"):
        config, wrong = load_config({}, {"STREAMGAUGE_LINGER_SECONDS": text})
        assert config.linger_seconds is None
        assert "linger_seconds" in wrong[0]


def test_server_can_be_switched_off_by_variable():
    """An empty address is an address: none."""
    assert load_config({}, {"STREAMGAUGE_METRICS_ADDRESS": ""})[0].metrics_address == ""
    assert load_config({}, {"STREAMGAUGE_APP": ""})[0].app is None


def test_keyword_wins_over_environment():
    """What is written in the job is meant."""
    assert load_config({"app": "mine"}, {"STREAMGAUGE_APP": "other"})[0].app == "mine"


def test_wrong_environment_is_a_sentence_and_the_default():
    """Kubernetes puts STREAMGAUGE_PORT there for a service of that name; a stream starts all the same."""
    config, wrong = load_config(
        {},
        {
            "STREAMGAUGE_PORT": "tcp://10.0.0.1:80",
            "STREAMGAUGE_INBOX_LIMIT": "many",
            "STREAMGAUGE_DISABLED": "perhaps",
            "STREAMGAUGE_QUERIES": "{",
        },
    )
    assert config == Config()
    assert len(wrong) == 4


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("QUERIES", "[" * 100_000),
        ("QUERIES", '{"orders": ' * 900 + "1" + "}" * 900),
        ("LINGER_SECONDS", "inf"),
        ("WATCH_SECONDS", "1e12"),
        ("TRACE_KEEP_SECONDS", "nan"),
        ("TEAM", "caf\udcff"),
        ("APP", "\udcff"),
        ("SERIES_LIMIT", "9" * 400),
    ],
)
def test_hostile_variable_is_a_sentence_and_the_default(variable, text):
    """Brackets without end, seconds without end, bytes that are no text: the stream starts all the same."""
    config, wrong = load_config({}, {f"STREAMGAUGE_{variable}": text})
    assert config == Config()
    assert len(wrong) == 1
    assert wrong[0].startswith(f"STREAMGAUGE_{variable} is ignored: ")


def test_longest_seconds_can_be_waited_for():
    """Whatever is allowed, a thread's join takes; otherwise it raises into the user's main thread."""
    assert 10 + LONGEST < threading.TIMEOUT_MAX


def test_keyword_and_variable_make_a_pair():
    """A password in code and a certificate in the environment are right together."""
    settings = {"metrics_auth_file": "f"}
    config, wrong = load_config(settings, {"STREAMGAUGE_METRICS_TLS_CERT": "c"})
    assert (config.metrics_auth_file, config.metrics_tls_cert, wrong) == ("f", "c", [])
    with pytest.raises(ConfigError, match="metrics_tls_cert"):
        load_config(settings, {})


def test_password_that_cant_be_honoured_closes_the_door():
    """Serving without the password that was asked for would be worse than not serving."""
    config, wrong = load_config({}, {"STREAMGAUGE_METRICS_AUTH_FILE": "f"})
    assert config.metrics_address == ""
    assert "not served" in wrong[0]


def test_opentelemetrys_variables_name_version_and_environment(monkeypatch):
    """`service.version` and friends are honoured, and our own settings win."""
    monkeypatch.setenv(
        "OTEL_RESOURCE_ATTRIBUTES", "service.version=1.2.3,deployment.environment.name=prod"
    )
    config, _ = load_config({})
    assert (config.code_version, config.env) == ("1.2.3", "prod")
    assert load_config({"env": "test"})[0].env == "test"


def test_owners_of_otel_fill_a_config_object_too(monkeypatch):
    """What the object says stands; what it leaves out comes from the variables, as with keywords."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=1.2.3,team=shop")
    filled = fill_owners(Config(team="checkout"))
    assert (filled.code_version, filled.team, filled.env) == ("1.2.3", "checkout", None)


def test_byte_that_is_no_text_in_opentelemetrys_variable_is_replaced(monkeypatch):
    """It is not our variable, so it is no mistake to complain of."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=caf\udcff")
    config, wrong = load_config({})
    assert (config.team, wrong) == ("caf\N{REPLACEMENT CHARACTER}", [])


def test_repr_has_no_secret():
    """Only what differs from the default, and masked."""
    text = repr(Config(pushgateway_url="https://u:hunter2@push:9091", app="shop"))
    assert text == "Config(app='shop', pushgateway_url='https://u:***@push:9091')"


@pytest.mark.parametrize(
    "config",
    [
        make_config({"tier": 1, "queries": {"orders": {"tier": 2}}}),
        make_config({"tier": 1, "queries": {"orders": QueryConfig(tier=2)}}),
        Config(tier=1, queries={"orders": QueryConfig(tier=2)}),
        load_config(
            {}, {"STREAMGAUGE_TIER": "1", "STREAMGAUGE_QUERIES": '{"orders": {"tier": 2}}'}
        )[0],
    ],
)
def test_whole_number_is_as_good_as_its_text(config):
    """`tier=1` is what people write; the label is "1"."""
    assert (config.tier, config.of_query("orders").tier) == ("1", "2")


def test_config_made_by_hand_takes_no_label_that_is_no_text():
    """It says which, instead of failing somewhere later."""
    with pytest.raises(ConfigError, match="team is 1\\.5; it must be text"):
        Config(team=1.5)


def test_config_made_by_hand_takes_queries_as_keywords_do():
    """Plain dictionaries become records, and a typo in them is told."""
    config = Config(queries={"orders": {"tier": 2, "team": "shop"}})
    assert (config.of_query("orders").tier, config.of_query("orders").team) == ("2", "shop")
    with pytest.raises(
        ConfigError, match=r"queries\.orders has no setting 'teem'; did you mean 'team'"
    ):
        Config(queries={"orders": {"teem": "shop"}})


def test_wrong_variable_names_what_was_meant():
    """A typo in a variable is one line that says what is allowed; JSON is asked for where it is JSON."""
    _, wrong = load_config({}, {"STREAMGAUGE_TEEM": "x", "STREAMGAUGE_QUERIES": "orders"})
    assert "did you mean 'team'? allowed: disabled, app" in wrong[0]
    assert "queries is 'orders', which must be JSON" in wrong[1]


def test_query_settings_fall_back_to_the_applications():
    """What a query does not say, the application says."""
    config = make_config({"team": "data", "queries": {"orders": {"tier": "1"}}})
    assert (config.of_query("orders").team, config.of_query("orders").tier) == ("data", "1")
    assert config.of_query("other").tier is None
