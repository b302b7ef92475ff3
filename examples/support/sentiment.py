"""Guesses how a customer feels. It stands for a small language model: mostly right, sometimes chatty, never vital.

The model runs on one thread, for one call at a time. In a run with faults it is now and then not sure about the tone of
a voucher, and asks marketing how the customer was treated before. Marketing is just granting that voucher, on its only
thread, and waits for the tone: three agents wait for one another. The gate does not let this call wait, and says so.
"""

from __future__ import annotations

from typing import cast

from agentgate import Agent, CallFailed, SyncContext
from shop import Mood, Note, Order
from trouble import Trouble, work_alone

agent = Agent("sentiment_agent", tier="optional", concurrency=1)
trouble = Trouble("sentiment_agent")

UNHAPPY = (
    "disappointed", "terrible", "not happy", "broken", "enttäuscht", "katastrophe", "déçue", "decepcionada", "deluso",
    "desiludida", "teleurgesteld", "rozczarowany", "üzgünüm", "残念", "失望",
)  # fmt: skip
HAPPY = (
    "always happy", "love your", "great prices", "wunderbar", "toujours un plaisir", "muy contento", "fantastico",
    "ótimo", "altijd snel", "świetny", "bra service", "いつもありがとう", "чудовий",
)  # fmt: skip


@agent.handles("mood", effect="read")
def mood(note: Note) -> Mood:
    """Guess the mood of a note."""
    if trouble.strikes(note.text, 0.06):
        raise ConnectionError("the model's server closed the connection")
    work_alone(0.02, 0.06)
    guess = _guess(note.text.lower())
    if trouble.strikes(f"prose {note.text}", 0.12):
        return _prose(guess)
    return guess


@agent.handles("tone", effect="read")
def tone(order: Order, ctx: SyncContext) -> Mood:
    """To which mood a line for this customer should speak; to an unhappy one who has had vouchers before, calmly."""
    guess = _guess(order.note.lower())
    if trouble.strikes(f"unsure {order.id}", 0.3):
        try:
            before = ctx.call(
                "marketing_agent", "history", f"history of {order.id}", order, effect="read", returns=list
            )
        except CallFailed:  # `deadlock`: marketing waits for this very answer, so it has to do without
            before = []
        guess = Mood("calm", 0.0) if before else guess
    return guess


def _guess(text: str) -> Mood:
    if any(word in text for word in UNHAPPY):
        return Mood("unhappy", -0.8)
    if any(word in text for word in HAPPY):
        return Mood("happy", 0.7)
    return Mood("calm", 0.1)


def _prose(guess: Mood) -> Mood:
    """What a model says that forgot which form its answer should have. It is no Mood, as the gate's side will find."""
    return cast("Mood", {"mood": f"Sure! I would say the customer is {guess.mood}.", "score": "fairly"})


if __name__ == "__main__":
    agent.run()
