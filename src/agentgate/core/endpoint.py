"""Endpoints of HTTP agents: which URLs may be called, and at which addresses.

An endpoint comes from an agent, and the gate calls it from inside the operator's network. So whoever may register must
not be able to point the gate at anything but agents: a database, a cloud's metadata service, a neighbour's admin port.

Rules for the URL. `http` or `https`, a host, perhaps a port, perhaps a path; nothing else. No user or password, no
query, no fragment, no spaces, no control or non-ASCII characters, no backslash, no `.` or `..` in the path. A host that
looks like a number is an IPv4 address in four decimal parts, or it is refused: `127.1`, `0x7f000001`, `2130706433` and
`0177.0.0.1` mean different things to different programs. An IPv6 address stands in brackets, without a zone.

Rules for the address. A network in the allow list allows every address in it. A host in the allow list allows that
name, whatever ordinary address it has; loopback, link-local (where clouds keep their metadata), multicast, reserved
and unspecified addresses are allowed by a network only. An IPv4 address written as IPv6 is refused, always: it would
pass for something that it is not. The host has to be allowed at every address that its name has.

How it works. One strict pattern for the whole URL; when it does not fit, the text is looked at again for the most
telling reason. Addresses are compared as numbers.

Not covered: looking names up, which is the adapter's, and when it is done (`gateway.http_agents`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from agentgate.core.ranges import all_of

URL_LENGTH_MAX: Final = 2048  # what proxies and servers take
NAME_LENGTH_MAX: Final = 253  # of a name in the DNS
PORT_MAX: Final = 65_535
SHOWN_MAX: Final = 200

_PATH_TEXT: Final = r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*"
_PATH: Final = re.compile(_PATH_TEXT)
_URL: Final = re.compile(
    r"(?P<scheme>[hH][tT][tT][pP][sS]?)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    rf"(?P<path>{_PATH_TEXT})"
)
_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*")
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)")
_ODD_PARTS: Final = (
    ("@", "an endpoint has no user and password in it"),
    ("#", "an endpoint has no fragment (`#…`)"),
    ("?", "an endpoint has no query (`?…`): the task type is appended to its path"),
    ("\\", "an endpoint has no backslash"),
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Site(Struct, frozen=True):
    """What an endpoint's URL says: the host as named (IPv6 without brackets), the path without a slash at its end."""

    is_tls: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What the `Host` header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(is_tls=self.is_tls) else f"{host}:{self.port}"

    @property
    def is_named(self) -> bool:
        """Whether the host is a name that has to be looked up."""
        return ":" not in self.host and _NUMBER.fullmatch(self.host) is None


def read_endpoint(url: str) -> Site:
    """What the URL says; raises `ValueError` with a sentence when it is no endpoint."""
    if len(url) > URL_LENGTH_MAX:
        raise ValueError(f"the endpoint has {len(url)} characters; at most {URL_LENGTH_MAX} are allowed")
    found = _URL.fullmatch(url)
    if found is None:
        raise ValueError(_why_not(url))
    is_tls = found["scheme"].lower() == "https"
    port = int(found["port"]) if found["port"] is not None else _default_port(is_tls=is_tls)
    if not 1 <= port <= PORT_MAX:
        raise ValueError(f"the endpoint's port is {port}; it has to be from 1 to {PORT_MAX}")
    check_path(found["path"])
    return Site(is_tls, _read_host(found["host"]), port, found["path"].rstrip("/"))


def check_path(path: str) -> None:
    """Raises `ValueError` with a sentence unless this can stand behind a host."""
    if len(path) > URL_LENGTH_MAX or _PATH.fullmatch(path) is None:
        raise ValueError(f"the path {path[:SHOWN_MAX]!r} has to begin with a slash; other characters are %-encoded")
    if any(unquote(segment) in (".", "..") for segment in path.split("/")):
        raise ValueError(f"the path {path[:SHOWN_MAX]!r} has `.` or `..` in it; write where it leads")


def segment_of(task_type: str) -> str:
    """The task type as one segment of a path, also when a server would take it for a direction."""
    return task_type.replace(".", "%2E") if task_type in (".", "..") else quote(task_type, safe=":")


class AllowList:
    """Where endpoints may be; raises `ValueError` with all entries that are neither host nor network."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._networks: list[Network] = []
        self._names: set[str] = set()
        wrong: list[str] = []
        for entry in entries:
            if _NAME.fullmatch(entry) and not _NUMBER.fullmatch(entry):
                self._names.add(entry.lower())
                continue
            try:
                self._networks.append(ip_network(entry))
            except ValueError as error:
                wrong.append(f"{entry!r} is neither a host's name nor a network such as 10.0.0.0/8: {error}")
        if wrong:
            raise ValueError(all_of(wrong))

    def finding(self, host: str, addresses: Sequence[str]) -> str | None:
        """Why a host with these addresses may not be called; None when it may."""
        if not addresses:
            return f"{host} has no address"
        for text in addresses:
            if (finding := self._finding(host, ip_address(text))) is not None:
                return finding
        return None

    def _finding(self, host: str, address: Address) -> str | None:
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            return f"{address} is an IPv4 address written as IPv6; write it as {address.ipv4_mapped}"
        if any(address in network for network in self._networks):
            return None
        if host.lower() in self._names and not _is_special(address):
            return None
        shown = host if host == str(address) else f"{host} ({address})"
        return f"{shown} is not allowed by agents.endpoint_allow; whoever runs the gate may add its network or name"


def preferred(addresses: Sequence[str]) -> str:
    """The address to call: the first of IPv4, where plain servers listen, else the first."""
    return next((address for address in addresses if ":" not in address), addresses[0])


def _default_port(*, is_tls: bool) -> int:
    return 443 if is_tls else 80


def _read_host(text: str) -> str:
    if text.startswith("["):
        try:
            return str(IPv6Address(text[1:-1]))
        except ValueError as error:
            raise ValueError(f"the endpoint's host is no IPv6 address: {error}") from None
    if _NUMBER.fullmatch(text):
        try:
            return str(IPv4Address(text))
        except ValueError:
            raise ValueError(
                f"the endpoint's host {text!r} looks like a number; write an address as four decimal parts, 127.0.0.1"
            ) from None
    if len(text) > NAME_LENGTH_MAX or _NAME.fullmatch(text) is None:
        raise ValueError(f"the endpoint's host {text[:SHOWN_MAX]!r} is no name of a host")
    return text.lower()


def _is_special(address: Address) -> bool:
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )


def _why_not(url: str) -> str:
    shown = repr(url[:SHOWN_MAX])
    for part, sentence in _ODD_PARTS:
        if part in url:
            return f"{sentence}: {shown}"
    scheme = url.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        return f"an endpoint begins with http:// or https://, not {shown}"
    return f"{shown} is no URL of an endpoint; one looks like http://127.0.0.1:9000/agent"
