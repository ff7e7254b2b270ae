"""LangGraph's generative user interfaces: the files that an author has built and named under `ui` in langgraph.json.

Only those files are served, a script and the style sheet beside it. Clients load them into the conversation's page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from markupsafe import escape
from pydantic import BaseModel

from assent.errors import NotFound
from assent.surfaces.api.langgraph.routing import router
from assent.surfaces.http.authentication import Caller

_INERT = {"Content-Security-Policy": "default-src 'none'; sandbox"}
"""The answer is a part of a page. Opened as a page of its own, it does nothing."""


class Component(BaseModel):
    name: str


def routes(ui: Mapping[str, Path]) -> APIRouter:
    """None without files: then there is nothing to ask for."""
    api = router("/ui", "ui")
    if not ui:
        return api

    @api.post("/{graph_id}", response_class=Response)
    async def show_component(caller: Caller, graph_id: str, body: Component) -> Response:
        """The tags that load the graph's files and render one component."""
        tags = [_tag(graph_id, file.name, body.name) for file in _files(ui, graph_id)]
        return Response("\n".join(tags), media_type="text/html", headers=_INERT)

    @api.get("/{graph_id}/{name}", response_class=Response)
    async def get_ui_file(caller: Caller, graph_id: str, name: str) -> Response:
        file = next((file for file in _files(ui, graph_id) if file.name == name), None)
        if file is None:
            raise NotFound(f"UI not found for graph '{graph_id}'")
        return FileResponse(file, headers={"Cache-Control": "no-cache"})

    return api


def _files(ui: Mapping[str, Path], graph_id: str) -> list[Path]:
    script = ui.get(graph_id)
    if script is None:
        raise NotFound(f"UI not found for graph '{graph_id}'")
    style = script.with_suffix(".css")
    return [script, *([style] if style.is_file() else [])]


def _tag(graph_id: str, name: str, component: str) -> str:
    address = escape(f"/ui/{quote(graph_id, safe='')}/{quote(name, safe='')}")
    if name.endswith(".css"):
        return f'<link rel="stylesheet" href="{address}" />'
    variable = re.sub(r"[^a-zA-Z0-9]", "_", graph_id)
    call = f'__LGUI_{variable}.render({escape(json.dumps(component))}, "{{{{shadowRootId}}}}")'
    return f"<script src=\"{address}\" onload='{call}'></script>"
