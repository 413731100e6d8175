"""`streamgauge export kubernetes`: what a cluster needs to scrape, judge and show its drivers.

A PodMonitor and a PrometheusRule for the Prometheus operator, the dashboards as ConfigMaps for Grafana's sidecar, and,
if asked for, what keeps others out: TLS and a password in the PodMonitor, a NetworkPolicy for each namespace.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .alerts import commands as rules_commands
from .alerts.prometheus import KUBERNETES_FILE, kubernetes_rule
from .alerts.yamltext import dump
from .dashboards import commands as dashboards_commands
from .dashboards.provisioning import config_maps

if TYPE_CHECKING:
    import argparse

FINE, COULD_NOT_LOOK = 0, 2
_HEADER = "# Written by `streamgauge export kubernetes`.\n"
_DRIVERS = {"matchLabels": {"spark-role": "driver"}}
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
    _add_access(exporter)
    rules_commands.add_choices(exporter)
    dashboards_commands.add_choices(exporter)
    exporter.set_defaults(run=run_export)


def _add_access(exporter: argparse.ArgumentParser) -> None:
    """Add the options that keep others out."""
    closed = exporter.add_argument_group("who may look")
    closed.add_argument(
        "--tls-secret",
        metavar="NAME",
        help="drivers serve TLS; its ca.crt, in --namespace, tells whom to trust",
    )
    closed.add_argument(
        "--tls-server-name",
        default="streamgauge",
        metavar="NAME",
        help="the name in the drivers' certificate: a pod's address can't be (%(default)s)",
    )
    closed.add_argument(
        "--basic-auth-secret",
        metavar="NAME",
        help="drivers want its username and password; only with --tls-secret",
    )
    closed.add_argument(
        "--allow-from",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="write a NetworkPolicy for each --watch: executors, and the metrics port from here",
    )


def run_export(args: argparse.Namespace) -> int:
    """Write the files and name them."""
    try:
        labels = _labels(args.label)
        rules = rules_commands.chosen(args)
        files = {
            "streamgauge.podmonitor.yml": [
                pod_monitor(args.metrics_port, args.watch, _credentials(args))
            ],
            KUBERNETES_FILE: [kubernetes_rule(rules)],
            "streamgauge-dashboards.yml": config_maps(dashboards_commands.chosen(args)),
        }
        if args.allow_from:
            files["streamgauge.networkpolicy.yml"] = network_policies(
                args.metrics_port, args.watch, args.allow_from
            )
        args.directory.mkdir(parents=True, exist_ok=True)
        for name, resources in files.items():
            for resource in resources:
                _place(resource, args.namespace, labels)
            path = args.directory / name
            path.write_text(_HEADER + "---\n".join(map(dump, resources)), encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    except (ValueError, OSError) as error:
        sys.stderr.write(f"streamgauge export: {error}\n")
        return COULD_NOT_LOOK
    rules_commands.warn_of_dead_links(rules.settings)
    return FINE


def pod_monitor(
    port: int, namespaces: list[str], credentials: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Scrapes every pod that Spark calls a driver, with the credentials that its endpoint wants.

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
        **(credentials or {}),
    }
    chosen = {"matchNames": namespaces} if namespaces else {"any": True}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": _metadata(),
        "spec": {
            "selector": _DRIVERS,
            "namespaceSelector": chosen,
            "podMetricsEndpoints": [endpoint],
        },
    }


def network_policies(port: int, namespaces: list[str], allowed: list[str]) -> list[dict[str, Any]]:
    """For each namespace: its drivers are reached by their executors, and on one port by the allowed namespaces."""
    if not namespaces:
        raise ValueError("--allow-from needs --watch: a NetworkPolicy belongs to one namespace")
    lookers = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
        for name in allowed
    ]
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {**_metadata(), "namespace": namespace},
            "spec": {
                "podSelector": _DRIVERS,
                "policyTypes": ["Ingress"],
                "ingress": [
                    {"from": [{"podSelector": {"matchLabels": {"spark-role": "executor"}}}]},
                    {"from": lookers, "ports": [{"port": port, "protocol": "TCP"}]},
                ],
            },
        }
        for namespace in namespaces
    ]


def _credentials(args: argparse.Namespace) -> dict[str, Any]:
    """What a PodMonitor's endpoint says of TLS and passwords; they lie in secrets beside it."""
    if args.basic_auth_secret and not args.tls_secret:
        raise ValueError(
            "--basic-auth-secret needs --tls-secret: the agent takes a password over TLS alone"
        )
    found: dict[str, Any] = {}
    if args.tls_secret:
        authority = {"secret": {"name": args.tls_secret, "key": "ca.crt"}}
        found["scheme"] = "https"
        found["tlsConfig"] = {"ca": authority, "serverName": args.tls_server_name}
    if args.basic_auth_secret:
        found["basicAuth"] = {
            key: {"name": args.basic_auth_secret, "key": key} for key in ("username", "password")
        }
    return found


def _metadata() -> dict[str, Any]:
    return {"name": "streamgauge", "labels": {"app.kubernetes.io/name": "streamgauge"}}


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
        metadata.setdefault("namespace", namespace)
