"""A gate's HTTP API, read with the standard library: commands start fast, and no proxy comes between."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Any, Final
from urllib.parse import quote

from agentgate.cli import exits
from agentgate.cli.exits import CommandError

URL_DEFAULT: Final = "http://127.0.0.1:7070"
TIMEOUT_S: Final = 10.0
WHAT_TO_TYPE: Final = "start one with `agentgate serve`, or set AGENTGATE_URL or --url to where it is"
ANSWER_BYTES_MAX: Final = 67_108_864  # a thousand spans are a few MiB


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


def read(url: str | None, *path: str, missing_ok: bool = False) -> Any:
    """The JSON answer of a path, each part of it quoted; None when there is no such thing and that is `missing_ok`."""
    return _ask(url, path, missing_ok=missing_ok)


def put(url: str | None, *path: str, body: dict[str, Any]) -> Any:
    """The JSON answer to a body that is put there."""
    return _ask(url, path, method="PUT", body=json.dumps(body).encode())


def delete(url: str | None, *path: str) -> Any:
    """The JSON answer to taking away what is there."""
    return _ask(url, path, method="DELETE")


def _ask(
    url: str | None, path: Sequence[str], *, method: str = "GET", body: bytes | None = None, missing_ok: bool = False
) -> Any:
    base = base_url(url)
    address = base + "/" + "/".join(quote(part, safe="") for part in path)
    headers = {} if body is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(address, body, headers, method=method)  # noqa: S310 - `base_url` lets only http(s) pass
    try:
        with _opener.open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(_body(answer))
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND and missing_ok:
            return None
        raise CommandError(f"{base}: {_detail(error)}") from None
    except (OSError, HTTPException) as error:
        raise CommandError(f"no gate answers at {base} ({_reason(error)}); {WHAT_TO_TYPE}", exits.NO_GATE) from None
    except ValueError:
        raise CommandError(f"{base} answers, but it is not a gate; set AGENTGATE_URL or --url", exits.NO_GATE) from None


def _body(answer: HTTPResponse | urllib.error.HTTPError) -> bytes:
    data = answer.read(ANSWER_BYTES_MAX + 1)
    if len(data) > ANSWER_BYTES_MAX:
        raise CommandError(f"the answer is larger than {ANSWER_BYTES_MAX} bytes")
    return data


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        document = json.loads(_body(error))
        return f"{document['detail'] or document['title']} {document['advice']}".strip()
    except (ValueError, KeyError, TypeError, OSError):
        return f"HTTP {error.code}"


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__
