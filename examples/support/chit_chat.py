"""Answers a greeting in kind, and words what others want to say. One thread, one thing at a time."""

from __future__ import annotations

from agentgate import Agent, CallFailed, SyncContext
from shop import Mood, Note, Order, Reply
from trouble import Trouble, work_alone

agent = Agent("chit_chat_agent", tier="optional", concurrency=1)
trouble = Trouble("chit_chat_agent")

LINES = {
    "DE": "Danke für Ihre Nachricht, ein Mensch antwortet Ihnen noch heute.",
    "ES": "Gracias por escribirnos, hoy mismo le responde una persona.",
    "FR": "Merci pour votre message, une personne vous répond aujourd'hui.",
    "IT": "Grazie del messaggio, oggi stesso le risponde una persona.",
    "JP": "メッセージをありがとうございます。本日中に担当者がお返事します。",
    "PT": "Obrigado pela mensagem, uma pessoa responde ainda hoje.",
}
IN_ENGLISH = "Thank you for writing, a person will answer you today."


@agent.handles("reply", effect="read")
def reply(note: Note) -> Reply:
    """A friendly line for a customer who wrote more than an address."""
    if trouble.strikes(note.text, 0.05):
        raise ConnectionError("the model's server closed the connection")
    work_alone(0.05, 0.15)
    return Reply(LINES.get(note.country, IN_ENGLISH))


@agent.handles("word", effect="read")
def word(order: Order, ctx: SyncContext) -> Reply:
    """A line that goes with a voucher, in a tone that suits the customer."""
    try:
        mood = ctx.call("sentiment_agent", "tone", f"tone for {order.id}", order, effect="read", returns=Mood).mood
    except CallFailed:
        mood = "calm"
    return Reply("We are sorry." if mood == "unhappy" else "With our compliments.")


if __name__ == "__main__":
    agent.run()
