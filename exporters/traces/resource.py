"""The traces' resource: which application the spans come from. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from streamgauge.model.application import Application
from streamgauge.model.query import Query


def describe_resource(application: Application, queries: Mapping[str, Query]) -> dict[str, str]:
    """Attributes of the resource; what is not known is empty.

    What the application does not say (Connect) comes from the first query whose details are known.
    """
    details = next((query.details for query in queries.values() if query.details), None)
    app_id = application.app_id or (details and details.app_id) or ""
    version = application.spark_version or (details and details.spark_version) or ""
    return {
        "service.name": application.name,
        "service.instance.id": app_id,
        "service.version": application.code_version or "",
        "deployment.environment.name": application.env or "",
        "spark.app.id": app_id,
        "spark.version": version,
    }
