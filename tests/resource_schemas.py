"""Whether a Kubernetes resource is what its kind's schema says."""

from __future__ import annotations

import json
import re

import jsonschema
import kubernetes_validate
from stage import ROOT

CRDS = {
    crd["kind"]: crd
    for crd in (json.loads(path.read_text()) for path in (ROOT / "tests/data/crd").glob("*.json"))
}


def strict(schema):
    """A structural schema that refuses unknown fields, as `kubectl apply --validate=strict` does."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    if isinstance(schema.get("pattern"), str):  # Go's flags may stand after the anchor
        made["pattern"] = re.sub(r"^\^\(\?i\)", "(?i)^", schema["pattern"])
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    return made


def validate(resource):
    """Raise unless the resource is what its kind's schema says."""
    if resource["kind"] in CRDS:
        crd = CRDS[resource["kind"]]
        assert resource["apiVersion"] == crd["apiVersion"]
        schema = strict(crd["schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        jsonschema.validate(resource, schema)
    else:
        kubernetes_validate.validate(resource, "1.31", strict=True)
