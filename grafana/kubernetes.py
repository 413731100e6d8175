"""`streamgauge export kubernetes`: what a cluster needs to scrape, judge and show its drivers.

A PodMonitor and a PrometheusRule for the Prometheus operator, and the dashboards as ConfigMaps for Grafana's sidecar.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .alerts import commands as rules_commands
from .alerts.knobs import UnknownKnobError
from .alerts.prometheus import KUBERNETES_FILE, kubernetes_rule
from .alerts.yamltext import dump
from .dashboards import commands as dashboards_commands
from .dashboards.provisioning import config_maps

if TYPE_CHECKING:
    import argparse

FINE, COULD_NOT_LOOK = 0, 2
_HEADER = "# Written by `streamgauge export kubernetes`.\n"
_LABEL = re.compile(r"([\w./-]+)=([\w.-]*)")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `export` to the command line; `run` of the parsed arguments gives the exit status."""
    parser = subparsers.add_parser("export", help="everything for one platform: kubernetes")
    actions = parser.add_subparsers(dest="action", required=True)
    exporter = actions.add_parser(
        "kubernetes", help="PodMonitor, PrometheusRule and dashboards, ready for kubectl apply"
    )
    exporter.add_argument("directory", type=Path, metavar="DIR")
    exporter.add_argument("--namespace", metavar="NAME", help="where the resources are put")
    exporter.add_argument(
        "--watch",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="where drivers run; every namespace unless named",
    )
    exporter.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what your Prometheus selects by, such as release=prometheus",
    )
    exporter.add_argument("--metrics-port", type=int, default=9465, metavar="PORT")
    rules_commands.add_choices(exporter)
    dashboards_commands.add_choices(exporter)
    exporter.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    """Write the files and name them."""
    try:
        labels = _labels(args.label)
        rules = rules_commands.chosen(args)
        files = {
            "streamgauge.podmonitor.yml": [pod_monitor(args.metrics_port, args.watch)],
            KUBERNETES_FILE: [kubernetes_rule(rules)],
            "streamgauge-dashboards.yml": config_maps(dashboards_commands.chosen(args)),
        }
        args.directory.mkdir(parents=True, exist_ok=True)
        for name, resources in files.items():
            for resource in resources:
                _place(resource, args.namespace, labels)
            path = args.directory / name
            path.write_text(_HEADER + "---\n".join(map(dump, resources)), encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    except (UnknownKnobError, ValueError, OSError) as error:
        sys.stderr.write(f"streamgauge export: {error}\n")
        return COULD_NOT_LOOK
    rules_commands.warn_of_relative_links(rules.settings)
    return FINE


def pod_monitor(port: int, namespaces: list[str]) -> dict[str, Any]:
    """Scrapes every pod that Spark calls a driver.

    A pod offers its declared ports alone, and Spark declares its own: the one that every driver has is found, and
    its number replaced, so that no pod template is needed.
    """
    endpoint = {
        "port": "driver-rpc-port",
        "path": "/metrics",
        "interval": "15s",
        "relabelings": [
            {
                "sourceLabels": ["__meta_kubernetes_pod_ip"],
                "regex": "([^:]+)",
                "targetLabel": "__address__",
                "replacement": f"$1:{port}",
            },
            {
                "sourceLabels": ["__meta_kubernetes_pod_ip"],
                "regex": "(.*:.*)",
                "targetLabel": "__address__",
                "replacement": f"[$1]:{port}",
            },
            {"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "instance"},
        ],
    }
    chosen = {"matchNames": namespaces} if namespaces else {"any": True}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {
            "name": "streamgauge",
            "labels": {"app.kubernetes.io/name": "streamgauge"},
        },
        "spec": {
            "selector": {"matchLabels": {"spark-role": "driver"}},
            "namespaceSelector": chosen,
            "podMetricsEndpoints": [endpoint],
        },
    }


def _labels(words: list[str]) -> dict[str, str]:
    found = {word: _LABEL.fullmatch(word) for word in words}
    for word, match in found.items():
        if not match:
            raise ValueError(f"--label {word!r} is not NAME=VALUE")
    return {match[1]: match[2] for match in found.values() if match}


def _place(resource: dict[str, Any], namespace: str | None, labels: dict[str, str]) -> None:
    metadata = resource["metadata"]
    metadata["labels"] = {**metadata["labels"], **labels}
    if namespace:
        metadata["namespace"] = namespace
