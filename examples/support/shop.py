"""The words this team of agents shares: what one asks another, and what it answers.

Each is an ordinary dataclass. The agents that handle them publish their JSON Schema, and the gate checks what passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Order:
    """One order as a customer placed it: a line of `orders.csv`."""

    id: str
    customer: str
    country: str
    since: int  # the year in which the customer first came
    sku: str
    n: int
    total_eur: int
    note: str


@dataclass(frozen=True)
class Note:
    """What a customer wrote, in whatever language."""

    text: str
    country: str


@dataclass(frozen=True)
class Intent:
    """What the note wants beside the goods."""

    language: str
    urgent: bool
    chatty: bool  # it greets or asks something: somebody should answer in kind


@dataclass(frozen=True)
class Goods:
    """What an order wants from the shelf."""

    order_id: str
    sku: str
    n: int


@dataclass(frozen=True)
class Reservation:
    """Where the goods wait."""

    shelf: str


@dataclass(frozen=True)
class Verdict:
    """Whether an order may go out, and if not, why."""

    ok: bool
    reason: str = ""


@dataclass(frozen=True)
class Mood:
    """How the customer feels; `score` runs from -1 to 1."""

    mood: Literal["unhappy", "calm", "happy"]
    score: float


@dataclass(frozen=True)
class Voucher:
    """A voucher for a customer to whom something is owed."""

    code: str


@dataclass(frozen=True)
class Reply:
    """A friendly line."""

    text: str


Status = Literal["confirmed", "declined", "back_ordered"]


@dataclass(frozen=True)
class Message:
    """What a customer is told."""

    order_id: str
    customer: str
    language: str
    urgent: bool
    status: Status
    extra: str = ""


@dataclass(frozen=True)
class Sent:
    """A message that went out, and by which way."""

    channel: str


@dataclass(frozen=True)
class Receipt:
    """How an order ended.

    `declined` is a business decision, and a good end: sold out, or not to be trusted. `back_ordered` is the degraded
    end: something did not work, and the customer gets the goods later. `told`: the customer has the message.
    """

    order_id: str
    status: Status
    told: bool
    shelf: str = ""
    reason: str = ""
    mood: str = "unknown"
    voucher: str = ""
