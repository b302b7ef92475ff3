"""Answers a greeting in kind."""

from __future__ import annotations

from agentgate import Agent
from shop import Note, Reply
from trouble import Trouble, work

agent = Agent("chit_chat_agent", tier="optional")
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
async def reply(note: Note) -> Reply:
    """A friendly line for a customer who wrote more than an address."""
    if trouble.strikes(note.text, 0.05):
        raise ConnectionError("the model's server closed the connection")
    await work(0.05, 0.15)
    return Reply(LINES.get(note.country, IN_ENGLISH))


if __name__ == "__main__":
    agent.run()
