"""`streamgauge rules list | export | check`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.model.thresholds import PARAMETERS

from .alertmanager import alertmanager_file
from .catalogue import GROUPS
from .check import Findings, UnreachableError, check
from .prometheus import (
    KUBERNETES_FILE,
    RULE_FILE,
    Export,
    disabled_names,
    kubernetes_file,
    rule_file,
)
from .settings import RuleSettingsError, Settings, parse_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

FINE, FOUND, COULD_NOT_LOOK = 0, 1, 2
_WRITERS: dict[str, dict[str, Callable[[Export], str]]] = {
    "prometheus": {RULE_FILE: rule_file},
    "kubernetes": {KUBERNETES_FILE: kubernetes_file},
    "alertmanager": {"alertmanager.yml": lambda export: alertmanager_file(export.settings)},
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `rules` to the command line; `run` of the parsed arguments gives the exit status."""
    parser = subparsers.add_parser("rules", help="the alert rules: list, export, check")
    actions = parser.add_subparsers(dest="action", required=True)
    _add_list(actions)
    _add_export(actions)
    _add_check(actions)


def _add_list(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lister = actions.add_parser("list", help="the alerts, or their rule parameters")
    lister.add_argument(
        "--parameters", "--knobs", action="store_true", help="list the rule parameters"
    )
    lister.add_argument("--json", action="store_true", help="for programs")
    lister.set_defaults(run=run_list)


def _add_export(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    exporter = actions.add_parser("export", help="write the rule files into a folder")
    exporter.add_argument("directory", type=Path, metavar="DIR")
    exporter.add_argument("--format", choices=sorted(_WRITERS), default="prometheus")
    add_choices(exporter)
    exporter.set_defaults(run=run_export)


def _add_check(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    checker = actions.add_parser("check", help="ask a Prometheus whether the rules can work there")
    checker.add_argument("url", metavar="URL", help="such as http://localhost:9090")
    checker.add_argument("--json", action="store_true", help="for programs")
    add_choices(checker)
    checker.set_defaults(run=run_check)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Let the command line change the rules."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PARAMETER=VALUE",
        help="such as stalled_seconds=600",
    )
    parser.add_argument("--disable", action="append", default=[], metavar="ALERT")
    parser.add_argument(
        "--selector",
        default="",
        help="""matcher of a label that every target has, such as cluster="eu\"""",
    )
    parser.add_argument("--time-scale", type=float, default=1.0, help="multiplies every duration")


def chosen(args: argparse.Namespace) -> Export:
    """What `add_choices` asked for; raises `RuleSettingsError`."""
    settings = parse_settings(args.set, args.time_scale)
    return Export(settings, args.selector, disabled_names(args.disable))


def run_list(args: argparse.Namespace) -> int:
    """Print the alerts or the rule parameters."""
    rows = _parameter_rows() if args.parameters else _alert_rows()
    if args.json:
        _say(json.dumps(rows, indent=2))
        return FINE
    widths = {name: max(len(str(row[name])) for row in rows) for name in rows[0]}
    for row in rows:
        _say("  ".join(str(value).ljust(widths[name]) for name, value in row.items()).rstrip())
    return FINE


def _alert_rows() -> list[dict[str, Any]]:
    settings = Settings()
    return [
        {
            "alert": alert.key,
            "severity": alert.severity,
            "for": settings.duration(alert.hold) if alert.hold else "0s",
            "category": group.category,
            "summary": alert.summary,
        }
        for group in GROUPS
        for alert in group.alerts
    ]


def _parameter_rows() -> list[dict[str, Any]]:
    return [
        {"knob": each.name, "default": each.default, "unit": each.unit, "what": each.doc}
        for each in PARAMETERS
    ]


def run_export(args: argparse.Namespace) -> int:
    """Write the files of the chosen format and name them."""
    try:
        export = chosen(args)
        args.directory.mkdir(parents=True, exist_ok=True)
        for name, writer in _WRITERS[args.format].items():
            path = args.directory / name
            path.write_text(writer(export), encoding="utf-8")
            _say(str(path))
    except (RuleSettingsError, OSError) as error:
        return _fail(str(error))
    if args.format != "alertmanager":
        warn_of_dead_links(export.settings)
    return FINE


def warn_of_dead_links(settings: Settings) -> None:
    """One line on stderr for each kind of link that would lead nowhere from a page."""
    place = settings.number("runbook_url")
    if "://" not in place:
        _complain(
            f"links to runbooks are relative ({place}/…), which no page can open;"
            " --set runbook_url=https://… says where you serve docs/runbooks"
        )
    place = settings.number("grafana_url")
    if "grafana_url" not in settings.values or "://" not in place:
        _complain(
            f"links to dashboards and traces lead to {place}, which no other host can open;"
            " --set grafana_url=https://… says where your Grafana is"
        )


def run_check(args: argparse.Namespace) -> int:
    """Print what the Prometheus lacks; 0 when the rules can work there, 1 when not."""
    try:
        findings = check(args.url, chosen(args))
    except (RuleSettingsError, UnreachableError) as error:
        return _fail(str(error))
    _say(json.dumps(findings.as_dict(), indent=2) if args.json else describe(findings))
    return FINE if findings.fine else FOUND


def describe(findings: Findings) -> str:
    """The findings for people."""
    series, alerts = findings.checked_series, findings.checked_rules
    checked = (
        f"whether the {series} series that the rules need are there, whether the {alerts} alerts"
    )
    lines = [f"checked: {checked} are loaded, and whether any of their rules fails"]
    lines += [f"missing: {n}, needed by {', '.join(u)}" for n, u in findings.missing.items()]
    lines += [f"not loaded: {name}" for name in findings.not_loaded]
    lines += [f"fails: {name}: {error}" for name, error in findings.rule_errors.items()]
    lines += [f"not there now: {name}, {why}" for name, why in findings.conditional.items()]
    lines.append("The rules can work here." if findings.fine else "The rules can't work here yet.")
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"streamgauge rules: {text}\n")


def _fail(text: str) -> int:
    _complain(text)
    return COULD_NOT_LOOK
