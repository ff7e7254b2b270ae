"""The author's part of the OpenAPI document: the routes of `http.app`, and the security of `auth.openapi`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp

log = logging.getLogger(__name__)

Json = dict[str, Any]
_REFERENCE = "#/components/schemas/"
_METHODS = ("get", "put", "post", "delete", "patch")


def add_routes(document: Json, custom: ASGIApp) -> None:
    """Adds the author's operations where there is none of ours. A schema whose name is taken gets another name."""
    theirs = _document(custom)
    paths, schemas = document.setdefault("paths", {}), document.setdefault("components", {}).setdefault("schemas", {})
    new = theirs.get("components", {}).get("schemas", {})
    taken = [name for name in new if name in schemas and schemas[name] != new[name]]
    text = json.dumps(theirs)
    for name in taken:
        text = text.replace(f'"{_REFERENCE}{name}"', f'"{_REFERENCE}Custom{name}"')
    renamed = json.loads(text)
    for path, operations in renamed.get("paths", {}).items():
        paths[path] = {**operations, **paths.get(path, {})}
    for name, schema in renamed.get("components", {}).get("schemas", {}).items():
        schemas[f"Custom{name}" if name in taken else name] = schema


def add_security(document: Json, security: Mapping[str, Any]) -> None:
    if schemes := security.get("securitySchemes"):
        document.setdefault("components", {}).setdefault("securitySchemes", {}).update(schemes)
    if "security" in security:
        document["security"] = security["security"]
    for path, methods in (security.get("paths") or {}).items():
        for method, required in methods.items() if isinstance(methods, dict) else ():
            operation = document["paths"].get(path, {}).get(method.lower())
            if operation is not None:
                operation["security"] = required


def _document(custom: ASGIApp) -> Json:
    """FastAPI has one; of a Starlette app, paths and methods are known."""
    openapi = getattr(custom, "openapi", None)
    if not callable(openapi):
        return {"paths": _paths(custom)}
    try:
        made: Json = json.loads(json.dumps(openapi()))
    except Exception:  # the author's code: its routes are left out of the document, and still served
        log.warning("describe custom routes failed", exc_info=True)
        return {}
    return made


def _paths(custom: ASGIApp) -> Json:
    paths: Json = {}
    for route in getattr(custom, "routes", ()):
        for method in sorted(getattr(route, "methods", None) or ()):
            if method.lower() in _METHODS:
                told = {"summary": getattr(route, "name", ""), "responses": {"200": {"description": "OK"}}}
                paths.setdefault(route.path, {})[method.lower()] = told
    return paths
