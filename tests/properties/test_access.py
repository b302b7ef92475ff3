"""Which Host and Origin a gate listens to."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.server.access import Access
from agentgate.server.options import ServerOptions

HERE = ("localhost", "LOCALHOST:7070", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535")
ADDRESSES = ("10.1.2.3", "192.168.0.7:7070", "[fe80::1]:80", "[2001:db8::a]", "0.0.0.0")  # noqa: S104 - a text
NAMES = ("gate.example.com", "Gate.Example.com:443", "gate")
FOREIGN = (
    "",
    "evil.example",
    "evil.example:7070",
    "localhost.evil.example",
    "localhost@evil.example",
    "evil.example#localhost",
    "gate.example.com.evil.example",
    "xgate.example.com",
    "gateXexample.com",
    "localhost:",
    "localhost:123456",
    "localhost:80:80",
    "127.0.0.1.evil.example",
    "1.2.3.4.5",
    "::1",
    "[evil.example]",
    "localhost\n",
)


@pytest.mark.parametrize(
    ("access", "allowed"),
    [
        (Access(), HERE),
        (Access(("gate", "gate.example.com")), HERE + NAMES),
        (Access(by_address=True), HERE + ADDRESSES),
        (Access(("gate", "gate.example.com"), by_address=True), HERE + NAMES + ADDRESSES),
    ],
)
def test_host_is_a_name_of_the_gate(access: Access, allowed: tuple[str, ...]) -> None:
    """I6: loopback always, configured names, with tokens any address; no other name, however it is dressed up."""
    for host in (*HERE, *NAMES, *ADDRESSES, *FOREIGN):
        assert (access.finding([host], []) is None) == (host in allowed), host


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_whatever_is_sent_has_an_answer(hosts: list[str], origins: list[str]) -> None:
    """B14: no header harms, and a refusal is short."""
    finding = Access(by_address=True).finding(hosts, origins)
    assert finding is None or len(finding) < 1000


@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("http://gate:7070", True),
        ("https://gate:7070", True),  # the reader's side of a proxy that speaks TLS
        ("HTTP://GATE:7070", True),
        ("http://gate", False),
        ("http://gate:7071", False),
        ("http://evil.example", False),
        ("ftp://gate:7070", False),
        ("gate:7070", False),
        ("null", False),
        ("", False),
    ],
)
def test_a_page_is_of_the_gate_itself(origin: str, passes: bool) -> None:
    """I6: a page may ask only the gate that it comes from, port and all."""
    access = Access(("gate",))
    assert (access.finding(["gate:7070"], [origin]) is None) == passes
    assert access.finding(["gate:7070"], ["http://evil.example", origin]) is not None


def test_hosts_are_names() -> None:
    """I7: names are separated by commas or spaces; what is no name is refused with an example."""
    assert ServerOptions(hosts=" gate.example.com,gate  other ").host_names == ("gate.example.com", "gate", "other")
    for wrong in ("http://gate", "gate:7070", "*", "-gate", "a" * 300, "gäte"):
        with pytest.raises(ValueError, match=re.escape("such as gate.example.com, without a port, not")):
            ServerOptions(hosts=wrong)


def test_other_addresses_need_tokens() -> None:
    """I6: a gate that other machines can reach has tokens, or does not start and says what to type."""
    for host in ("0.0.0.0", "10.0.0.1", "::", "gate.example.com"):  # noqa: S104 - it is refused, or has tokens
        with pytest.raises(ValueError, match=r"needs tokens\. Type: agentgate token create NAME --scope submit"):
            ServerOptions(host=host)
        assert ServerOptions(host=host, tokens="tokens.json").host == host
    for host in ("127.0.0.1", "::1", "localhost"):
        assert ServerOptions(host=host).tokens is None
    with pytest.raises(ValueError, match="tokens must name a file, or be off"):
        ServerOptions(tokens=" ")
