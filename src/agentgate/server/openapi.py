"""The OpenAPI document: what can be asked over HTTP, by whom, and what comes back.

Made from the route table. A handler's code gives path, method and words; its `Doc` the types, codes and examples; its
scope what a token needs. Schemas come from the types that are sent.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from typing import Any, Final

import msgspec
from litestar.handlers import HTTPRouteHandler

from agentgate.errors import CODES
from agentgate.server.api.doc import DOC_OPTION, Doc, Parameter, Shown
from agentgate.server.api.scope import SCOPE_OPTION
from agentgate.server.problems import MEDIA_TYPE, TYPES, ProblemDocument, encode

REFERENCE: Final = "#/components/schemas/{name}"
TOKEN: Final = "token"  # noqa: S105 - the name of a security scheme
PATH_PARAMETER: Final = re.compile(r"{(\w+):\w+}")
UNKNOWN_VERSION: Final = "0"
SIGNED: Final = ("unauthorized", "forbidden")

DESCRIPTION: Final = """The HTTP API of a gate between agents.

Every error is a problem document (RFC 9457) with a `code`; `x-should-retry: false` means what it says. Without tokens a
gate is on loopback only and asks nobody for one."""


@functools.cache
def document_bytes(handlers: tuple[HTTPRouteHandler, ...]) -> bytes:
    """The document as it is sent; made once, which takes some fifty milliseconds."""
    return encode(document(handlers))


def document(handlers: Iterable[HTTPRouteHandler]) -> dict[str, Any]:
    """The whole document."""
    operations = [operation for handler in handlers for operation in _operations(handler)]
    types = [type_ for _, _, _, doc in operations for type_ in _types(doc)]
    schemas, components = msgspec.json.schema_components([*types, ProblemDocument], ref_template=REFERENCE)
    schema_of = {_name(type_): schema for type_, schema in zip([*types, ProblemDocument], schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for path, method, handler, doc in operations:
        paths.setdefault(path, {})[method] = _operation(handler, doc, path, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "AgentGate", "version": _version(), "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {TOKEN: {"type": "http", "scheme": "bearer"}},
        },
    }


def _operations(handler: HTTPRouteHandler) -> Iterator[tuple[str, str, HTTPRouteHandler, Doc]]:
    doc: Doc = handler.opt.get(DOC_OPTION) or Doc(answers={200: Shown(type=Any, example=None)})
    for path in sorted(handler.paths):
        for method in sorted(handler.http_methods - {"OPTIONS", "HEAD"}):
            yield PATH_PARAMETER.sub(r"{\1}", path), method.lower(), handler, doc


def _types(doc: Doc) -> Iterator[Any]:
    shown = [*doc.answers.values(), *([doc.body] if doc.body is not None else [])]
    yield from (one.type for one in shown if one.type is not None)
    yield from (parameter.type for parameter in doc.parameters)


def _operation(handler: HTTPRouteHandler, doc: Doc, path: str, schema_of: dict[str, Any]) -> dict[str, Any]:
    scope = handler.opt.get(SCOPE_OPTION)
    summary, _, more = cleandoc(handler.fn.__doc__ or "").partition("\n")
    asked = f"Needs a token with the scope `{scope}`, where the gate asks for tokens." if scope else "For everybody."
    operation: dict[str, Any] = {
        "operationId": handler.handler_name,
        "summary": summary.rstrip("."),
        "description": f"{more.strip()}\n\n{asked}".strip(),
        "tags": [path.split("/")[2] if path.startswith("/v1/") else "gate"],
        "x-agentgate-scope": scope,
        "responses": {str(status): _answer(status, shown, schema_of) for status, shown in doc.answers.items()},
    }
    if scope:
        operation["security"] = [{TOKEN: []}, {}]
    if parameters := [*_path_parameters(path, doc), *(_parameter(one, schema_of) for one in doc.parameters)]:
        operation["parameters"] = parameters
    if doc.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(doc.body, schema_of)}
    operation["responses"].update(_errors(doc, schema_of, signed=bool(scope)))
    return operation


def _answer(status: int, shown: Shown, schema_of: dict[str, Any]) -> dict[str, Any]:
    if status == HTTPStatus.NO_CONTENT:
        return {"description": shown.meaning}
    return {"description": shown.meaning or "As asked.", "content": _content(shown, schema_of)}


def _content(shown: Shown, schema_of: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "string"} if shown.type is None else schema_of[_name(shown.type)]
    return {shown.media_type: {"schema": schema, "example": shown.example}}


def _path_parameters(path: str, doc: Doc) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
            "example": doc.path_examples.get(name, name),
        }


def _parameter(parameter: Parameter, schema_of: dict[str, Any]) -> dict[str, Any]:
    written = {
        "name": parameter.name,
        "in": parameter.place,
        "required": False,
        "description": parameter.meaning,
        "schema": schema_of[_name(parameter.type)],
    }
    return written if parameter.example is None else {**written, "example": parameter.example}


def _errors(doc: Doc, schema_of: dict[str, Any], *, signed: bool) -> dict[str, Any]:
    """Responses by status; codes that share one are its examples."""
    found: dict[str, Any] = {}
    for code in dict.fromkeys((*doc.errors, *(SIGNED if signed else ()), "internal")):
        info = CODES[code]
        answer = found.setdefault(str(info.http_status), {"description": "", "content": {MEDIA_TYPE: {"examples": {}}}})
        answer["description"] = "; ".join(filter(None, (answer["description"], f"`{code}`: {info.title}")))
        content = answer["content"][MEDIA_TYPE]
        content["schema"] = schema_of[_name(ProblemDocument)]
        content["examples"][code] = {"value": _example(code)}
    return found


def _example(code: str) -> dict[str, Any]:
    info = CODES[code]
    example: dict[str, Any] = {
        "type": TYPES[code],
        "title": info.title,
        "status": info.http_status,
        "detail": "",
        "code": code,
        "fault": info.fault,
        "sent": info.fault not in ("refused", "caller"),
        "retry": info.retry,
        "advice": info.advice,
    }
    return example | ({"retry_after_ms": 1000} if info.retry == "after" else {})


def _name(type_: Any) -> str:
    return repr(type_)


def _version() -> str:
    try:
        return version("agentgate-control-plane")
    except PackageNotFoundError:  # a checkout that is not installed
        return UNKNOWN_VERSION
