"""How the agents and processes of several tenants are told apart inside one gate.

Two tenants may both have an agent `stock`, and a process `i1` of it. Whatever the gate keeps by such a name (queues,
breakers, time-outs, connections) keeps it by the *qualified* name: the tenant, a separator that no name can contain,
and the plain name. So no rule has to think of tenants. The names of the default tenant, of which most gates have no
other, are qualified already: they are the plain ones.

Who comes from outside is qualified where he is let in. Names are plain again where they leave: in spans, listings and
messages by `plain`, in the sentences of errors by `told`.
"""

from __future__ import annotations

from typing import Final

from agentgate.model.call import DEFAULT_TENANT

SEPARATOR: Final = "\x1f"  # unprintable, so every check of a name that comes from outside refuses it
OF: Final = "/"  # what operators see in its place


def qualified(tenant: str, name: str) -> str:
    """What the gate keeps an agent, or a process, of this tenant by."""
    return name if tenant == DEFAULT_TENANT else f"{tenant}{SEPARATOR}{name}"


def plain(name: str) -> str:
    """The name as its own tenant knows it."""
    return name.rpartition(SEPARATOR)[2] if SEPARATOR in name else name


def tenant_of(name: str) -> str:
    """Whose name it is."""
    tenant, separator, _ = name.partition(SEPARATOR)
    return tenant if separator else DEFAULT_TENANT


def told(tenant: str, text: str) -> str:
    """A sentence for this tenant, with the names in it as it knows them."""
    return text if tenant == DEFAULT_TENANT else text.replace(tenant + SEPARATOR, "")


def logged(name: str) -> str:
    """A name for operators, who see all tenants: `tenant/name`, or the plain name of the default tenant."""
    return name.replace(SEPARATOR, OF)
