"""Provisioning files for Grafana: where dashboards are, and the two data sources they want.

Exemplars of Prometheus carry `trace_id`; the data source says which store that id is looked up in.
Tempo and Jaeger are both written down, under one uid: take the one that you run.
"""

from __future__ import annotations

from typing import Any

from streamgauge.grafana.alerts.yamltext import dump

_HEADER = "# Written by `make dashboards`; a change belongs in grafana/dashboards/*.py.\n"
PROMETHEUS_UID, TRACES_UID = "prometheus", "tempo"
_TRACE_STORES = {
    "tempo": {"url": "http://localhost:3200", "jsonData": {"nodeGraph": {"enabled": True}}},
    "jaeger": {"url": "http://localhost:16686", "jsonData": {"nodeGraph": {"enabled": True}}},
}


def provisioning_files() -> dict[str, str]:
    """Path below Grafana's provisioning folder and text of each file."""
    return {
        "provisioning/dashboards/streamgauge.yml": _HEADER + dump(_providers()),
        **{
            f"provisioning/datasources/streamgauge-{kind}.yml": _HEADER + dump(_datasources(kind))
            for kind in _TRACE_STORES
        },
    }


def _providers() -> dict[str, Any]:
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": "streamgauge",
                "orgId": 1,
                "folder": "Streamgauge",
                "folderUid": "streamgauge",
                "type": "file",
                "disableDeletion": False,
                "updateIntervalSeconds": 30,
                "allowUiUpdates": False,
                "options": {"path": "/var/lib/grafana/dashboards/streamgauge"},
            }
        ],
    }


def _datasources(traces: str) -> dict[str, Any]:
    return {
        "apiVersion": 1,
        "datasources": [
            {
                "name": "Prometheus",
                "uid": PROMETHEUS_UID,
                "type": "prometheus",
                "access": "proxy",
                "url": "http://localhost:9090",
                "isDefault": True,
                "jsonData": {
                    "httpMethod": "POST",
                    "timeInterval": "15s",  # the scrape interval, from which $__rate_interval is made
                    "exemplarTraceIdDestinations": [
                        {"name": "trace_id", "datasourceUid": TRACES_UID}
                    ],
                },
            },
            {
                "name": traces.capitalize(),
                "uid": TRACES_UID,
                "type": traces,
                "access": "proxy",
                **_TRACE_STORES[traces],
            },
        ],
    }


def config_maps(boards: dict[str, str]) -> list[dict[str, Any]]:
    """A ConfigMap for each board, with the label that Grafana's sidecar looks for."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name.removesuffix(".json"),
                "labels": {"grafana_dashboard": "1", "app.kubernetes.io/name": "streamgauge"},
                "annotations": {"grafana_folder": "Streamgauge"},
            },
            "data": {name: text.rstrip("\n")},
        }
        for name, text in boards.items()
    ]


def kubernetes_file(boards: dict[str, str]) -> str:
    """The text of those."""
    return _HEADER + "---\n".join(dump(one) for one in config_maps(boards))
