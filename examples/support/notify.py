"""Tells customers what became of their order.

In a run with faults one of its processes dies at the worst moment: the message is out, and nobody has heard of it yet.
An agent without a gate would be asked again and would write to the customer twice. Here the gate waits for the next
process and asks its check.
"""

from __future__ import annotations

import os
import signal

from agentgate import Agent
from effects import Effects
from shop import Message, Sent
from trouble import Trouble, work

agent = Agent("notify_agent", tier="standard", concurrency=16)
effects = Effects("notify_agent")
trouble = Trouble("notify_agent")

SUBJECTS = {
    "confirmed": "Your order is on its way",
    "declined": "We cannot take your order",
    "back_ordered": "Your order will take a little longer",
}


@agent.handles("send")
async def send(message: Message) -> Sent:
    """Send one message."""
    text = f"{message.customer}: {SUBJECTS[message.status]}. {message.extra}".strip()
    await work(0.05, 0.15)
    await effects.append("notified", message.order_id, text)
    if trouble.happens_once("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    return Sent(channel_for(message))


@agent.check("send")
async def was_sent(message: Message) -> Sent | None:
    """Asked when nobody knows whether the message went out."""
    return None if await effects.find("notified", message.order_id) is None else Sent(channel_for(message))


def channel_for(message: Message) -> str:
    """Urgent news goes to the telephone."""
    return "sms" if message.urgent else "e-mail"


if __name__ == "__main__":
    agent.run()
