"""What is said in a measurement: orders that are looked up or booked, and the frames that say so.

Frames are written by hand around the few parts that change, and of what comes only those parts are read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from agentgate.model import Card, Skill
from agentgate.model.link import BeatParams, HelloParams

AGENTS: Final = ("desk-1", "desk-2", "desk-3", "desk-4")
CONCURRENCY: Final = 128  # each; what is measured is the gate, so nobody waits for a place at an agent
READ: Final = "look_up"
WRITE: Final = "book"

_encode: Final = msgspec.json.Encoder().encode


class Item(Struct):
    """A line of an order."""

    sku: str
    count: int


class Order(Struct):
    """The payload of every call: about 200 bytes."""

    order_id: str
    customer: str
    items: list[Item]
    total_cents: int
    note: str = ""


class Placed(Struct):
    """The answer."""

    order_id: str
    state: str
    shelf: int


_ORDER: Final = Order(
    order_id="A-20391",
    customer="c-7719",
    items=[Item(sku="lamp-e27-warm", count=2), Item(sku="cable-2m", count=1)],
    total_cents=5_480,
    note="leave it with the neighbour",
)
PAYLOAD: Final = _encode(_ORDER)
VALUE: Final = _encode(Placed(order_id="A-20391", state="on_shelf", shelf=12))


class Seen(Struct):
    """What a load client reads of a message; everything else is left undecoded."""

    id: str | int | None = None
    result: Result | None = None
    error: Any = None


class Result(Struct):
    """What a load client reads of an outcome."""

    error: Any = None


class Work(Struct):
    """What an agent reads of a message."""

    id: str | int | None = None
    method: str = ""
    params: WorkParams | None = None
    error: Any = None


class WorkParams(Struct):
    """What an agent reads of a unit of work."""

    effect: str = "write"


read_seen: Final = msgspec.json.Decoder(Seen | list[Seen]).decode
read_work: Final = msgspec.json.Decoder(Work | list[Work]).decode


def card(agent: str) -> Card:
    """What an agent declares; both skills are typed, as those of an SDK agent are."""
    taken, given = msgspec.json.schema(Order), msgspec.json.schema(Placed)
    return Card(
        agent=agent,
        concurrency=CONCURRENCY,
        skills=(
            Skill(task_type=READ, effect="read", input_schema=taken, output_schema=given),
            Skill(task_type=WRITE, effect="write", input_schema=taken, output_schema=given),
        ),
    )


def payload_of(size: int) -> bytes:
    """The payload, with a note that makes it this long; no shorter than without one."""
    order = msgspec.structs.replace(_ORDER, note="")
    return _encode(msgspec.structs.replace(order, note="x" * (size - len(_encode(order)))))


def hello(agent: str, instance: str, declared: Card | None = None) -> bytes:
    """The first message of a link."""
    params = HelloParams(agent=agent, instance=instance, card=declared)
    return b'{"jsonrpc":"2.0","id":"hello","method":"hello","params":%b}' % _encode(params)


def beat() -> bytes:
    """A sign of life."""
    return b'{"jsonrpc":"2.0","method":"beat","params":%b}' % _encode(BeatParams())


def read_call(call_id: str, target: str) -> bytes:
    """A call without a key."""
    return (
        b'{"jsonrpc":"2.0","id":"%b","method":"call","params":{"target":"%b","task_type":"%b","payload":%b,"effect":"read"}}'
        % (call_id.encode(), target.encode(), READ.encode(), PAYLOAD)
    )


def write_call(call_id: str, target: str) -> bytes:
    """A keyed call; its business key is as unique as its id."""
    return (
        b'{"jsonrpc":"2.0","id":"%b","method":"call","params":'
        b'{"target":"%b","task_type":"%b","business_key":"%b","payload":%b}}'
        % (call_id.encode(), target.encode(), WRITE.encode(), call_id.encode(), PAYLOAD)
    )


def answer(unit: str, seq: int) -> bytes:
    """What a unit came to; `seq` numbers the keyed answers of an instance, 0 for a read."""
    numbered = b',"seq":%d' % seq if seq else b""
    return b'{"jsonrpc":"2.0","id":"%b","result":{"value":%b%b,"handler_ms":0.01}}' % (unit.encode(), VALUE, numbered)


def outcome(call_id: str) -> bytes:
    """The outcome of a read, as the gate would say it; an agent that is called directly does."""
    return b'{"id":"%b","result":{"value":%b},"jsonrpc":"2.0"}' % (call_id.encode(), VALUE)
