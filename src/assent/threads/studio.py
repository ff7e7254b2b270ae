"""Links into LangGraph Studio."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from assent.threads.model.deployments import Deployment

_STUDIO = "https://smith.langchain.com/studio/thread"


def studio_link(deployment: Deployment, thread_id: str) -> str:
    """The thread in LangGraph Studio. The person's browser has to reach the deployment by the same URL."""
    host = (deployment.info or {}).get("host") or {}
    deployed = {"organizationId": host.get("tenant_id"), "hostProjectId": host.get("project_id")}
    query = {"baseUrl": deployment.url, **{name: str(value) for name, value in deployed.items() if value}}
    return f"{_STUDIO}/{quote(thread_id, safe='')}?{urlencode(query)}"
