"""Settings from `STREAMGAUGE_<FIELD>` variables, and from OpenTelemetry's own.

A wrong keyword in code raises `ConfigError`, because somebody is there to read it. A wrong variable is one
line in the log and the default: an environment is written by many hands, and a stream must not fail to
start for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from .config import DEFAULTS, FIELDS, Config, ConfigError, make_config, suggest
from .masking import clean, mask

PREFIX = "STREAMGAUGE_"
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off", ""})


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
        raise ConfigError(f"there is no such setting; {suggest(name, FIELDS)}")
    default = DEFAULTS[name]
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
        form = ", which must be JSON" if isinstance(default, dict) else ""
        raise ConfigError(f"{name} is {mask(text)!r}{form}: {error}") from None
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
