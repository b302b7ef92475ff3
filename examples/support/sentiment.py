"""Guesses how a customer feels. It stands for a small language model: mostly right, sometimes chatty, never vital."""

from __future__ import annotations

from typing import cast

from agentgate import Agent
from shop import Mood, Note
from trouble import Trouble, work

agent = Agent("sentiment_agent", tier="optional")
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
async def mood(note: Note) -> Mood:
    """Guess the mood of a note."""
    if trouble.strikes(note.text, 0.06):
        raise ConnectionError("the model's server closed the connection")
    await work(0.04, 0.12)
    guess = _guess(note.text.lower())
    if trouble.strikes(f"prose {note.text}", 0.12):
        return _prose(guess)
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
