"""The settings: one frozen record. A wrong name or value raises `ConfigError`; variables are read in `environment`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from streamgauge.model.thresholds import PER_QUERY

from .errors import StreamgaugeError
from .masking import MASK, clean, mask, mask_all

_LABELS = ("app", "team", "env", "tier", "code_version")  # settings that become label values

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


def suggest(name: str, allowed: Iterable[str]) -> str:
    """The name that was probably meant, and the ones that are allowed."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a typo

    names = tuple(allowed)
    near = get_close_matches(name, names, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"allowed: {', '.join(names)}"


def _is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_labels(settings: Struct) -> None:
    """Refuse what no page can hold: a byte of a variable that is not UTF-8 arrives as half a pair.

    A whole number is as good as its text: `tier=1`.
    """
    for name in _LABELS:
        value = getattr(settings, name, None)
        if _is_whole_number(value):
            msgspec.structs.force_setattr(settings, name, str(value))
        elif not isinstance(value, str | None):
            raise ConfigError(f"{name} is {value!r}; it must be text")
    texts = [(name, getattr(settings, name, None) or "") for name in _LABELS]
    for name, text in (*texts, *(("queries", name) for name in getattr(settings, "queries", ()))):
        if text != text.encode(errors="replace").decode():
            raise ConfigError(f"{name} has {text!r}; it must be text in UTF-8")


class QueryConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the owner of one query says of it; what is not said comes from the application."""

    team: str | None = None
    """Owner, for routing pages; the application's unless set."""
    env: str | None = None
    """Environment, such as prod; the application's unless set."""
    tier: str | None = None
    """Importance, such as 1; the application's unless set."""
    code_version: str | None = None
    """Version of the query's code; the application's unless set."""
    alerting: bool = True
    """Whether alert rules may fire for it."""
    expected: bool = False
    """Whether it must be running: an alert fires while it is not."""
    idempotent_sink: bool | None = None
    """Whether a batch that is written twice leaves the sink as if written once; wins over the sink's kind."""
    silence_seconds: Seconds | None = None
    """Shortest time without events before it can count as stalled; the application's unless set."""
    partition_series: Annotated[int, Meta(ge=-1)] = 32
    """Backlog by partition: of so many partitions per source, those furthest behind; 0: none, -1: all."""
    observed_counts: tuple[str, ...] = ()
    """Numbers of `df.observe()` that are counts, as `name.field`, `*` for any text: `["quality.*"]`. They are counters too."""
    thresholds: dict[str, Annotated[float, Meta(ge=0)]] = {}
    """Thresholds of the alert rules that are other for this query, by rule parameter: `{"late_ratio": 0.1}`."""

    def __post_init__(self) -> None:
        _check_labels(self)
        for name, value in self.thresholds.items():
            if name not in PER_QUERY:
                raise ConfigError(f"thresholds has no {name!r}; {suggest(name, PER_QUERY)}")
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
    """debug (one line per batch), info, warning, error or off."""
    team: str | None = None
    """Owner, for routing pages."""
    env: str | None = None
    """Environment, such as prod; else `deployment.environment.name` of OTEL_RESOURCE_ATTRIBUTES."""
    tier: str | None = None
    """Importance, such as 1."""
    code_version: str | None = None
    """Version of the user's code; else `service.version` of OTEL_RESOURCE_ATTRIBUTES."""
    queries: dict[str, QueryConfig] = {}
    """Settings of single queries, by name (see below); as a variable it is JSON."""

    def __post_init__(self) -> None:
        _check_labels(self)
        if any(isinstance(own, dict) for own in self.queries.values()):
            msgspec.structs.force_setattr(self, "queries", _convert_queries(self.queries))
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
            if value != DEFAULTS.get(name)
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
            field: getattr(self, field) for field in _INHERITED if getattr(own, field) is None
        }
        return msgspec.structs.replace(own, **missing)


# What a query has of the application unless it says otherwise.
_INHERITED = ("team", "env", "tier", "code_version", "silence_seconds")
# Where the data lies is nobody's business in a log.
_HIDDEN = frozenset({"kafka"})
DEFAULTS: dict[str, Any] = {
    field.name: ({} if field.name == "queries" else field.default)
    for field in msgspec.structs.fields(Config)
}
FIELDS = tuple(DEFAULTS)


_Settings = TypeVar("_Settings", bound=Struct)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, dict) else value


def make_config(settings: Mapping[str, Any]) -> Config:
    """Build a `Config` from keyword arguments alone; raise `ConfigError` on anything wrong."""
    return _convert(dict(settings), Config)


def _convert(settings: dict[str, Any], kind: type[_Settings], where: str = "") -> _Settings:
    """Build one record; `where` is the path to it, for messages."""
    settings = _plain(settings)
    names = kind.__struct_fields__
    for name in settings:
        if name not in names:
            among = f"{where} has" if where else "there is"
            raise ConfigError(f"{among} no setting {name!r}; {suggest(str(name), names)}")
    for name in _LABELS:
        if _is_whole_number(settings.get(name)):
            settings[name] = str(settings[name])
    if isinstance(queries := settings.get("queries"), dict):
        settings["queries"] = _convert_queries(queries)
    try:
        return msgspec.convert(settings, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        raise ConfigError(_explain(error, settings, where)) from None


def _convert_queries(queries: Mapping[Any, Any]) -> dict[Any, Any]:
    """The settings of single queries as records; what is no mapping is left for others to refuse."""
    return {
        name: _convert(own, QueryConfig, f"queries.{clean(name)}")
        if isinstance(own, dict) and isinstance(name, str)
        else own
        for name, own in queries.items()
    }


def _explain(error: msgspec.ValidationError, settings: Mapping[str, Any], where: str) -> str:
    """Turn msgspec's "Expected `int`, got `str` - at `$.inbox_limit`" into setting, value, rule."""
    rule, _, path = str(error).partition(" - at `$.")
    name = path.rstrip("`").partition(".")[0].partition("[")[0]
    if name in settings:
        full = f"{where}.{name}" if where else name
        return f"{full} is {mask_all(_plain(settings[name]))!r}: {rule}"
    return str(error)
