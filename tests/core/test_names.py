"""Names of several tenants inside one gate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.keys import name_flaw
from agentgate.model import DEFAULT_TENANT, Card, Route, logged, plain, qualified, tenant_of, told
from agentgate.model.names import SEPARATOR

NAMES = st.text(min_size=1).filter(lambda name: name_flaw("name", name) is None)
TENANTS = st.sampled_from((DEFAULT_TENANT, "blue", "blue.one"))


@given(TENANTS, NAMES)
def test_a_qualified_name_gives_back_its_parts(tenant: str, name: str) -> None:
    """I6: tenant and name come back as they went in; the default tenant's names are qualified already."""
    inside = qualified(tenant, name)
    assert (tenant_of(inside), plain(inside)) == (tenant, name)
    assert (inside == name) == (tenant == DEFAULT_TENANT)


@given(TENANTS, NAMES, TENANTS, NAMES)
def test_two_names_are_kept_apart(tenant: str, name: str, other_tenant: str, other: str) -> None:
    """I6: no tenant can choose a name that is kept as another tenant's."""
    same = (tenant, name) == (other_tenant, other)
    assert (qualified(tenant, name) == qualified(other_tenant, other)) == same


def test_the_separator_is_no_part_of_a_name() -> None:
    """I6: a name with the separator in it is refused where names come in."""
    assert name_flaw("agent", f"blue{SEPARATOR}stock") == (
        "agent contains the character U+001F, which is not allowed in a name"
    )


@pytest.mark.parametrize(
    ("tenant", "text", "shown", "in_the_log"),
    [
        ("default", "stock has 3", "stock has 3", "stock has 3"),
        ("blue", "blue\x1fstock > blue\x1ftill", "stock > till", "blue/stock > blue/till"),
        ("blue", "red\x1fstock", "red\x1fstock", "red/stock"),
    ],
)
def test_sentences_are_told_in_plain_names(tenant: str, text: str, shown: str, in_the_log: str) -> None:
    """I6: a tenant reads its own names as it gave them; an operator reads whose they are."""
    assert told(tenant, text) == shown
    assert logged(text) == in_the_log


def test_a_route_knows_what_its_agent_is_kept_by() -> None:
    """I6: the same agent of two tenants has two routes, kept by two names."""
    routes = [Route(card=Card(agent="stock"), tenant=tenant) for tenant in ("default", "blue")]
    assert [(route.agent, route.qualified) for route in routes] == [("stock", "stock"), ("stock", "blue\x1fstock")]
