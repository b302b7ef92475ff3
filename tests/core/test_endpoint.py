"""Which endpoints may be called: the URL, the address, and every way to write one as the other."""

from __future__ import annotations

import pytest

from agentgate.core.endpoint import AllowList, Site, check_path, preferred, read_endpoint, segment_of

LOOPBACK = AllowList(["127.0.0.0/8", "::1/128"])


@pytest.mark.parametrize(
    ("url", "site", "authority"),
    [
        ("http://127.0.0.1:9000", Site(False, "127.0.0.1", 9000, ""), "127.0.0.1:9000"),
        ("http://127.0.0.1", Site(False, "127.0.0.1", 80, ""), "127.0.0.1"),
        ("HTTPS://Agents.Internal/", Site(True, "agents.internal", 443, ""), "agents.internal"),
        ("https://agents.internal:8443/a/b/", Site(True, "agents.internal", 8443, "/a/b"), "agents.internal:8443"),
        ("http://[::1]:9000/x", Site(False, "::1", 9000, "/x"), "[::1]:9000"),
        ("http://[0:0:0:0:0:0:0:1]/", Site(False, "::1", 80, ""), "[::1]"),
        ("http://stock_agent-1:80/v1/%20x", Site(False, "stock_agent-1", 80, "/v1/%20x"), "stock_agent-1"),
        ("http://1a.2b/", Site(False, "1a.2b", 80, ""), "1a.2b"),
    ],
)
def test_an_endpoint_is_read(url: str, site: Site, authority: str) -> None:
    """A1: scheme, host, port and path, with the defaults of the scheme and one slash less at the end."""
    assert read_endpoint(url) == site
    assert site.authority == authority


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://127.0.0.1/", "begins with http"),
        ("file:///etc/passwd", "begins with http"),
        ("127.0.0.1:9000", "begins with http"),
        ("", "begins with http"),
        ("http://", "is no URL"),
        ("http:///path", "is no URL"),
        ("http://a b/", "is no URL"),
        ("http://a/\r\nx: y", "is no URL"),
        ("http://a/\x00", "is no URL"),
        ("http://ä.example/", "is no URL"),
        ("http://a:/", "is no URL"),
        ("http://a:123456/", "is no URL"),
        ("http://a/%zz", "is no URL"),
        ("http://a[::1]/", "is no URL"),
        ("http://user:secret@127.0.0.1/", "no user and password"),
        ("http://127.0.0.1@10.0.0.1/", "no user and password"),
        ("http://a/#x", "no fragment"),
        ("http://a/?x=y", "no query"),
        ("http://a\\@b/", "no user and password"),
        ("http://a/b\\c", "no backslash"),
        ("http://a:0/", "port is 0"),
        ("http://a:65536/", "port is 65536"),
        ("http://a/b/../c", "`.` or `..`"),
        ("http://a/%2e%2E/c", "`.` or `..`"),
        ("http://a/./c", "`.` or `..`"),
        ("http://127.1/", "looks like a number"),
        ("http://2130706433/", "looks like a number"),
        ("http://0x7f000001/", "looks like a number"),
        ("http://0x7f.0.0.1/", "looks like a number"),
        ("http://0177.0.0.1/", "looks like a number"),
        ("http://127.0.0.01/", "looks like a number"),
        ("http://256.0.0.1/", "looks like a number"),
        ("http://a.1/", "looks like a number"),
        ("http://[::1%25lo]/", "is no URL"),
        ("http://[1::2::3]/", "no IPv6 address"),
        ("http://-a/", "no name of a host"),
        ("http://a..b/", "no name of a host"),
        ("http://a./", "no name of a host"),
        ("http://" + "a" * 64 + "/", "no name of a host"),
        ("http://" + ".".join(["a" * 60] * 5) + "/", "no name of a host"),
        ("http://a/" + "b" * 2048, "characters; at most 2048"),
    ],
)
def test_what_is_no_endpoint_is_refused_with_the_reason(url: str, why: str) -> None:
    """B14: odd schemes, credentials, fragments, numbers in disguise and traversals are refused in one sentence."""
    with pytest.raises(ValueError, match=why):
        read_endpoint(url)


@pytest.mark.parametrize("path", ["healthz", "//\n", "/a b", "/a?b", "/../x", "/" + "x" * 2048])
def test_a_path_of_a_probe_is_checked_alike(path: str) -> None:
    """A probe's path is a path and nothing else."""
    check_path("/healthz")
    with pytest.raises(ValueError, match="the path"):
        check_path(path)


@pytest.mark.parametrize(
    ("host", "addresses"),
    [("localhost", ["127.0.0.1", "::1"]), ("127.8.9.1", ["127.8.9.1"]), ("::1", ["::1"])],
)
def test_loopback_is_allowed_by_default(host: str, addresses: list[str]) -> None:
    """The address counts, not the name."""
    assert LOOPBACK.finding(host, addresses) is None


@pytest.mark.parametrize(
    ("host", "addresses", "why"),
    [
        ("evil.example", ["10.0.0.1"], "evil.example (10.0.0.1) is not allowed by agents.endpoint_allow"),
        ("10.0.0.1", ["10.0.0.1"], "10.0.0.1 is not allowed by agents.endpoint_allow"),
        ("both.example", ["127.0.0.1", "169.254.169.254"], "both.example (169.254.169.254) is not allowed"),
        ("none.example", [], "none.example has no address"),
        ("::ffff:127.0.0.1", ["::ffff:127.0.0.1"], "is an IPv4 address written as IPv6; write it as 127.0.0.1"),
        ("::127.0.0.1", ["::7f00:1"], "is not allowed"),
        ("fe80::1", ["fe80::1%eth0"], "is not allowed"),
    ],
)
def test_everything_else_is_not(host: str, addresses: list[str], why: str) -> None:
    """I6: one address that is not allowed is enough; a name that leads elsewhere is no way round."""
    finding = LOOPBACK.finding(host, addresses)
    assert finding is not None
    assert why in finding


def test_a_name_in_the_list_has_any_ordinary_address() -> None:
    """A name allows what it leads to, but never this machine, a cloud's metadata or other special addresses."""
    allowed = AllowList(["Agents.internal", "10.1.0.0/16", "fd00::/8"])
    for address in ("10.9.9.9", "93.184.215.14", "2001:4860::8888", "fd00::1"):
        assert allowed.finding("agents.internal", [address]) is None
    for address in ("127.0.0.1", "169.254.169.254", "224.0.0.1", "0.0.0.0", "::1", "fe80::1", "ff02::1", "240.0.0.1"):  # noqa: S104 - an address that is refused
        assert allowed.finding("agents.internal", [address]) is not None
    assert allowed.finding("other.internal", ["10.1.2.3"]) is None
    assert allowed.finding("other.internal", ["10.2.2.3"]) is not None
    assert allowed.finding("x", ["::ffff:10.1.0.1"]) is not None


@pytest.mark.parametrize("entry", ["", "a b", "10.0.0.1/8", "300.0.0.0/8", "http://a/", "-a", "10.0"])
def test_an_entry_that_means_nothing_is_refused(entry: str) -> None:
    """I7: a wrong entry is found when it is read, and not when an agent registers."""
    with pytest.raises(ValueError, match="neither a host's name nor a network"):
        AllowList([entry])


def test_ipv4_is_called_first() -> None:
    """Where a name has both kinds of addresses, plain servers listen on the old one."""
    assert preferred(["::1", "127.0.0.1", "127.0.0.2"]) == "127.0.0.1"
    assert preferred(["::1", "::2"]) == "::1"


@pytest.mark.parametrize(
    ("task_type", "segment"),
    [("reserve", "reserve"), ("check:confirm", "check:confirm"), ("a/b", "a%2Fb"), ("?#ü", "%3F%23%C3%BC"),
     (".", "%2E"), ("..", "%2E%2E"), ("a.b", "a.b")],
)  # fmt: skip
def test_a_task_type_is_one_segment(task_type: str, segment: str) -> None:
    """Whatever a task type is called, it stays one part of the path."""
    assert segment_of(task_type) == segment


@pytest.mark.parametrize(("host", "named"), [("localhost", True), ("127.0.0.1", False), ("::1", False)])
def test_only_names_are_looked_up(host: str, *, named: bool) -> None:
    """An address is used as it is written."""
    assert Site(False, host, 80, "").is_named is named
