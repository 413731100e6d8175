"""The settings: one frozen record, from keyword arguments or `STREAMGAUGE_<FIELD>` variables.

A wrong keyword or value in code raises `ConfigError`, because somebody is there to read it. A wrong
variable is one line in the log and the default: an environment is written by many hands, and a
stream must not fail to start for it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from streamgauge.model.thresholds import PER_QUERY

from .errors import StreamgaugeError
from .masking import MASK, clean, mask, mask_all

PREFIX = "STREAMGAUGE_"
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off", ""})

LONGEST = 1e9  # seconds; a lock of Python's waits no longer than ten times that
Seconds = Annotated[float, Meta(ge=0, le=LONGEST)]
Finite = Annotated[float, Meta(ge=-LONGEST, le=LONGEST)]  # bounds refuse nan as well
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


def is_trace_file(setting: str) -> bool:
    """Whether a value of `traces` names a file; a word alone is more likely a slip."""
    return ("/" in setting and "://" not in setting) or setting.endswith((".json", ".jsonl"))


def is_properties_file(setting: str) -> bool:
    """Whether a value of `kafka` names a file; brokers have neither a slash nor such an ending."""
    return "/" in setting or setting.endswith((".properties", ".conf"))


class ConfigError(StreamgaugeError, ValueError):
    """A setting that can't be used; the message names it, its value and what is allowed."""


def _suggest(name: str, allowed: Iterable[str]) -> str:
    """The name that was probably meant, and the ones that are allowed."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a typo

    names = tuple(allowed)
    near = get_close_matches(name, names, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"allowed: {', '.join(names)}"


def _check_labels(settings: Struct) -> None:
    """Refuse what no page can hold: a byte of a variable that is not UTF-8 arrives as half a pair."""
    fields = ("app", "team", "env", "tier", "code_version")
    texts = [(name, getattr(settings, name, None) or "") for name in fields]
    for name, text in (*texts, *(("queries", name) for name in getattr(settings, "queries", ()))):
        if text != text.encode(errors="replace").decode():
            raise ConfigError(f"{name} has {text!r}; it must be text in UTF-8")


class QueryConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the owner of one query says of it; what is not said comes from the application."""

    team: str | None = None
    env: str | None = None
    tier: str | None = None
    code_version: str | None = None
    alerting: bool = True
    expected: bool = False
    idempotent_sink: bool | None = None
    """Whether a batch that is written twice leaves the sink as if written once; wins over the sink's kind."""
    silence_seconds: Seconds | None = None
    partition_series: Annotated[int, Meta(ge=-1)] = 32
    """Backlog by partition: of so many partitions a source, those furthest behind; 0: none, -1: all."""
    thresholds: dict[str, Annotated[float, Meta(ge=0)]] = {}
    """Thresholds of the alert rules that are other for this query, by rule parameter: `{"late_ratio": 0.1}`."""

    def __post_init__(self) -> None:
        _check_labels(self)
        for name, value in self.thresholds.items():
            if name not in PER_QUERY:
                raise ConfigError(f"thresholds has no {name!r}; {_suggest(name, PER_QUERY)}")
            if not math.isfinite(value):
                raise ConfigError(f"thresholds.{name} is {value}; it must be a number, 0 or more")


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting of the agent, with its default."""

    disabled: bool = False
    """Turn everything off without touching the job."""
    app: str | None = None
    """Value of the label `app`; the Spark application's name unless set."""
    metrics_address: str = "127.0.0.1:9465"
    """Where `/metrics` is served; a taken port moves on to the next 16; empty: not at all."""
    metrics_tls_cert: str | None = None
    """PEM file with the certificate chain (and the key, unless that has a file of its own)."""
    metrics_tls_key: str | None = None
    """PEM file with the private key."""
    metrics_auth_file: str | None = None
    """File with one line `user:password` for basic authentication; only over TLS."""
    sd_file: str | None = None
    """Write the served address there, for Prometheus' file-based discovery (`.json`)."""
    pushgateway_url: str | None = None
    """Push to this Pushgateway every 15 s and at the end."""
    traces: str = "auto"
    """auto (as OTEL_* variables say; nothing set: none), off, otlp, or a file for OTLP JSON lines."""
    trace_keep_seconds: Finite = 60.0
    """Batches at least so long, failed and replayed ones and starts are always sampled; -1: as others."""
    linger_seconds: Seconds | None = None
    """At exit, wait so long at most until the final state was scraped; unset: for one interval of a Prometheus that scrapes; 0: never."""
    silence_seconds: Seconds = 300.0
    """How long any query may be silent; the budget of each grows from here with its own pace."""
    watch_seconds: Annotated[float, Meta(ge=0.05, le=LONGEST)] = 5.0
    """How often the driver is looked at between events."""
    grace_seconds: Seconds = 300.0
    """How long a query that ended well stays on the page."""
    flight_recorder_dir: str | None = None
    """Keep the last 200 events of each query in files there (mode 0600, masked)."""
    checkpoint_seconds: Seconds = 60.0
    """How often the names in each checkpoint, and what waits in files and Delta tables, are read; 0: never."""
    checkpoint_state_size: bool = False
    """Add up the files of state/ too, every tenth time; on object stores such a listing costs money."""
    kafka: str | None = None
    """Ask Kafka itself for both ends of the topics: HOST:PORT[,…], or a client's properties file."""
    series_limit: Count = 50_000
    """Past so many series new label sets are refused and counted."""
    inbox_limit: Count = 10_000
    """Past so many waiting events the oldest progress of the same query goes."""
    log_level: str = "info"
    """debug (a line a batch), info, warning, error or off."""
    team: str | None = None
    """Owner, for routing pages."""
    env: str | None = None
    """Environment, such as prod; else `deployment.environment.name` of OTEL_RESOURCE_ATTRIBUTES."""
    tier: str | None = None
    """How much it matters, such as 1."""
    code_version: str | None = None
    """Version of the user's code; else `service.version` of OTEL_RESOURCE_ATTRIBUTES."""
    queries: dict[str, QueryConfig] = {}
    """The same and more for single queries, by name."""

    def __post_init__(self) -> None:
        _check_labels(self)
        if self.log_level not in {"debug", "info", "warning", "error", "off"}:
            raise ConfigError(
                f"log_level is {self.log_level!r}; allowed: debug, info, warning, error, off"
            )
        if self.traces not in {"auto", "off", "otlp"} and not is_trace_file(self.traces):
            raise ConfigError(
                f"traces is {mask(self.traces)!r}; allowed: auto, off, otlp, "
                "or the path of a file (with a / in it, or ending in .jsonl)"
            )
        if self.kafka and not is_properties_file(self.kafka) and ":" not in self.kafka:
            raise ConfigError(
                "kafka must be HOST:PORT (more after commas), or the path of a properties file "
                "(with a / in it, or ending in .properties)"
            )
        if self.metrics_address:
            self.metrics_endpoint()
        if self.metrics_auth_file and not self.metrics_tls_cert:
            raise ConfigError(
                "metrics_auth_file is set without metrics_tls_cert; "
                "a password goes over TLS only: set both, or neither"
            )
        if self.metrics_tls_key and not self.metrics_tls_cert:
            raise ConfigError("metrics_tls_key is set without metrics_tls_cert; set both")

    def __repr__(self) -> str:
        """The settings that differ from the default, with secrets masked."""
        parts = (
            f"{name}={MASK if name in _HIDDEN else mask_all(_plain(value))!r}"
            for name, value in ((field, getattr(self, field)) for field in self.__struct_fields__)
            if value != _DEFAULTS.get(name)
        )
        return f"Config({', '.join(parts)})"

    def metrics_endpoint(self) -> tuple[str, int]:
        """Host and port of `metrics_address`."""
        host, colon, port = self.metrics_address.rpartition(":")
        if not (colon and host and port.isdecimal() and int(port) < 65_536):
            raise ConfigError(
                f"metrics_address is {mask(self.metrics_address)!r}; "
                "it must be HOST:PORT such as 127.0.0.1:9465, or empty for no server"
            )
        return host.strip("[]"), int(port)

    def of_query(self, name: str) -> QueryConfig:
        """What holds for one query: its own settings over the application's.

        By the name as it is shown: one that holds what looks like a secret is shown otherwise than given.
        """
        found = (own for given, own in self.queries.items() if clean(given) == name)
        own = next(found, QueryConfig())
        missing = {
            field: getattr(self, field)
            for field in ("team", "env", "tier", "code_version", "silence_seconds")
            if getattr(own, field) is None
        }
        return msgspec.structs.replace(own, **missing)


# Where the data lies is nobody's business in a log.
_HIDDEN = frozenset({"kafka"})
_DEFAULTS: dict[str, Any] = {
    field.name: ({} if field.name == "queries" else field.default)
    for field in msgspec.structs.fields(Config)
}
FIELDS = tuple(_DEFAULTS)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, dict) else value


def make_config(settings: Mapping[str, Any]) -> Config:
    """Build a `Config` from keyword arguments alone; raise `ConfigError` on anything wrong."""
    for name in settings:
        if name not in FIELDS:
            raise ConfigError(f"there is no setting {name!r}; {_suggest(name, FIELDS)}")
    try:
        return msgspec.convert(_plain(dict(settings)), Config)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        raise ConfigError(_explain(error, settings)) from None


def _explain(error: msgspec.ValidationError, settings: Mapping[str, Any]) -> str:
    """Turn msgspec's "Expected `int`, got `str` - at `$.inbox_limit`" into setting, value, rule."""
    rule, _, path = str(error).partition(" - at `$.")
    name = path.rstrip("`").partition(".")[0].partition("[")[0]
    if name in settings:
        return f"{name} is {mask_all(_plain(settings[name]))!r}: {rule}"
    return str(error)


def read_environment(
    environ: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Return the settings found in the environment, and a sentence for each that is wrong."""
    environ = os.environ if environ is None else environ
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for variable, text in environ.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        try:
            value = _parse(name, text)
            make_config({name: value} if name not in _PAIRED else {})
        except (ConfigError, RecursionError) as error:  # the latter: JSON of a thousand brackets
            wrong.append(f"{variable} is ignored: {error}")
        else:
            found[name] = value
    return found, wrong


# Settings that are right or wrong only together with others.
_PAIRED = frozenset({"metrics_auth_file", "metrics_tls_key"})
_OPTIONAL_NUMBERS = frozenset({"linger_seconds"})


def _parse(name: str, text: str) -> Any:
    """Read the text of a variable as the setting's type."""
    if name not in FIELDS:
        raise ConfigError(f"there is no such setting; allowed: {', '.join(FIELDS)}")
    default = _DEFAULTS[name]
    if isinstance(default, bool):
        if text.lower() in _YES | _NO:
            return text.lower() in _YES
        raise ConfigError(f"{name} is {text!r}; allowed: 1, 0, true, false")
    try:
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float) or (name in _OPTIONAL_NUMBERS and text):
            return float(text)
        if isinstance(default, dict):
            return msgspec.json.decode(text)
    except (ValueError, msgspec.DecodeError) as error:
        raise ConfigError(f"{name} is {mask(text)!r}: {error}") from None
    # An empty address means that nothing is served; any other empty text, that nothing was said.
    return text if text or name == "metrics_address" else default


def load_config(
    settings: Mapping[str, Any], environ: Mapping[str, str] | None = None
) -> tuple[Config, list[str]]:
    """Build the configuration: keyword arguments, else environment, else defaults.

    Raises `ConfigError` for wrong keyword arguments; wrong variables come back as sentences.
    """
    found, wrong = read_environment(environ)
    owners = _owners_of_otel(os.environ if environ is None else environ)
    try:
        return make_config({**owners, **found, **settings}), wrong
    except ConfigError as error:
        make_config(settings)
        # Somebody asked for a password or TLS and got it wrong: serving without would be worse.
        wrong.append(f"metrics are not served: {error}")
        rest = {name: value for name, value in found.items() if name not in _PAIRED}
        return make_config({**owners, **rest, **settings, "metrics_address": ""}), wrong


def fill_owners(config: Config) -> Config:
    """Owner and version from OpenTelemetry's own variables, where a configuration leaves them out."""
    owners = _owners_of_otel(os.environ)
    missing = {name: value for name, value in owners.items() if getattr(config, name) is None}
    return msgspec.structs.replace(config, **missing)


def _owners_of_otel(environ: Mapping[str, str]) -> dict[str, str]:
    """Owner and version as OpenTelemetry's own variables give them."""
    if not environ.get("OTEL_RESOURCE_ATTRIBUTES"):
        return {}
    from opentelemetry.sdk.resources import OTELResourceDetector  # noqa: PLC0415 - takes 50 ms

    attributes = OTELResourceDetector().detect().attributes
    names = {
        "code_version": ("service.version",),
        "env": ("deployment.environment.name", "deployment.environment"),
        "team": ("team", "service.namespace"),
        "tier": ("tier",),
    }
    found = {
        field: next((clean(str(attributes[key])) for key in keys if key in attributes), None)
        for field, keys in names.items()
    }
    return {field: value for field, value in found.items() if value}
