"""A gate's HTTP API, asked with the standard library: commands start fast, and no proxy comes between."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Any, Final
from urllib.parse import quote, urlencode

from agentgate.cli import exits
from agentgate.cli.exits import CommandError
from agentgate.sdk.credentials import credentials
from agentgate.server.access import GATE_NAME

URL_DEFAULT: Final = "http://127.0.0.1:7070"
TIMEOUT_S: Final = 10.0
SILENCE_S: Final = 30.0  # of a stream: a gate says every ten seconds that it is still there
WHAT_TO_TYPE: Final = "start one with `agentgate serve`, or set AGENTGATE_URL or --url to where it is"
TOKEN_STATUSES: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
ANSWER_BYTES_MAX: Final = 67_108_864  # a thousand spans are a few MiB


NOT_A_GATE: Final = "{} answers, but it is not an AgentGate gate; set AGENTGATE_URL or --url to where one is"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A gate never redirects; whoever does is not one."""

    def redirect_request(self, *_: object) -> None:
        """Do not follow."""


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


def base_url(url: str | None) -> str:
    """The gate's address: the option, else AGENTGATE_URL, else the default."""
    base = (url or os.environ.get("AGENTGATE_URL") or URL_DEFAULT).rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise CommandError(f"{base!r} is no address of a gate; it looks like {URL_DEFAULT}", exits.MISUSED)
    return base


def read(url: str | None, *path: str, missing_ok: bool = False, query: Mapping[str, object] | None = None) -> Any:
    """The JSON answer of a path, each part of it quoted; None when there is no such thing and that is `missing_ok`."""
    status, document = ask(url, *path, query=query)
    if status == HTTPStatus.NOT_FOUND and missing_ok:
        return None
    return _unless_refused(url, status, document)


def send(url: str | None, body: object, *path: str) -> Any:
    """Post a JSON document to a path; the JSON answer."""
    return _unless_refused(url, *ask(url, *path, body=json.dumps(body).encode()))


def put(url: str | None, *path: str, body: object) -> Any:
    """Put a JSON document at a path; the JSON answer."""
    return _unless_refused(url, *ask(url, *path, body=json.dumps(body).encode(), method="PUT"))


def delete(url: str | None, *path: str) -> Any:
    """The JSON answer to taking away what is there."""
    return _unless_refused(url, *ask(url, *path, method="DELETE"))


def ask(
    url: str | None,
    *path: str,
    query: Mapping[str, object] | None = None,
    body: bytes | None = None,
    method: str | None = None,
) -> tuple[int, Any]:
    """Status and JSON of a gate's answer: what was asked for, or an error document; nobody else's is let through."""
    try:
        with _opener.open(_request(url, *path, query=query, body=body, method=method), timeout=TIMEOUT_S) as answer:
            if GATE_NAME in answer.headers:
                return answer.status, json.loads(_body(answer))
    except urllib.error.HTTPError as error:
        document = _document(error)
        if _is_refusal(document):
            return error.code, document
    except (OSError, HTTPException) as error:
        raise _no_gate(url, error) from None
    except ValueError:  # no JSON
        pass
    raise _not_a_gate(url)


def events(url: str | None, *path: str) -> Generator[tuple[str, bytes]]:
    """The server-sent events of a path, each as its name and its data, until the gate ends the stream."""
    try:
        with _opener.open(_request(url, *path), timeout=SILENCE_S) as answer:
            if GATE_NAME not in answer.headers:
                raise _not_a_gate(url)
            yield from _events(answer)
    except urllib.error.HTTPError as error:
        document = _document(error)
        if not _is_refusal(document):
            raise _not_a_gate(url) from None
        _unless_refused(url, error.code, document)
    except (OSError, HTTPException) as error:
        raise _no_gate(url, error) from None


def _events(answer: HTTPResponse) -> Iterator[tuple[str, bytes]]:
    """Those whose data is one line, as a gate sends them."""
    name = ""
    while line := answer.readline(ANSWER_BYTES_MAX):
        field, _, value = line.rstrip(b"\n").partition(b": ")
        if field == b"event":
            name = value.decode(errors="replace")
        elif field == b"data":
            yield name, value


def _request(
    url: str | None,
    *path: str,
    query: Mapping[str, object] | None = None,
    body: bytes | None = None,
    method: str | None = None,
) -> urllib.request.Request:
    address = base_url(url) + "/" + "/".join(quote(part, safe="") for part in path)
    if given := {name: value for name, value in (query or {}).items() if value not in (None, "")}:
        address += "?" + urlencode(given)
    return urllib.request.Request(  # noqa: S310 - `base_url` has looked at the scheme
        address,
        body,
        {**credentials(), **({"Content-Type": "application/json"} if body is not None else {})},
        method=method,
    )


def _no_gate(url: str | None, error: Exception) -> CommandError:
    return CommandError(f"no gate answers at {base_url(url)} ({_reason(error)}); {WHAT_TO_TYPE}", exits.NO_GATE)


def _not_a_gate(url: str | None) -> CommandError:
    return CommandError(NOT_A_GATE.format(base_url(url)), exits.NO_GATE)


def _body(answer: HTTPResponse | urllib.error.HTTPError) -> bytes:
    data = answer.read(ANSWER_BYTES_MAX + 1)
    if len(data) > ANSWER_BYTES_MAX:
        raise CommandError(f"the answer is larger than {ANSWER_BYTES_MAX} bytes")
    return data


def _unless_refused(url: str | None, status: int, document: Any) -> Any:
    if status < HTTPStatus.BAD_REQUEST:
        return document
    detail = document["detail"] or document["title"]
    said = f"{detail}{'' if detail.endswith('.') else '.'} {document['advice']}".strip()
    raise CommandError(f"{base_url(url)}: {said}", exits.MISUSED if status in TOKEN_STATUSES else exits.FAILED)


def _is_refusal(document: Any) -> bool:
    """Whether it is an error document of a gate, and not the page of another server."""
    return isinstance(document, dict) and {"code", "detail", "title", "advice"} <= document.keys()


def _document(error: urllib.error.HTTPError) -> Any:
    try:
        return json.loads(_body(error))
    except (ValueError, RecursionError, OSError, HTTPException):
        return None


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__
