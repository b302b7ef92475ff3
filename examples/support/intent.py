"""Reads what a customer wrote: the language, whether it is urgent, whether it wants an answer."""

from __future__ import annotations

from agentgate import Agent
from shop import Intent, Note
from trouble import work

agent = Agent("intent_agent", tier="core")

LANGUAGE_OF_COUNTRY = {
    "DE": "de", "FR": "fr", "ES": "es", "IT": "it", "PT": "pt", "NL": "nl", "PL": "pl", "SE": "sv",
    "TR": "tr", "JP": "ja", "CN": "zh", "UA": "uk", "EG": "ar", "GR": "el",
}  # fmt: skip
URGENT = (
    "asap", "needed by", "urgent", "dringend", "urgente", "urgência", "spoed", "pilne", "brådskande", "acil",
    "至急", "急用", "терміново", "επείγον",
)  # fmt: skip
GREETINGS = (
    "hello", "hi there", "good morning", "guten tag", "hallo", "bonjour", "hola", "buenas", "buongiorno", "olá",
    "dzień dobry", "hej!", "merhaba", "こんにちは", "你好", "مرحبا", "καλημέρα",
)  # fmt: skip


@agent.handles("classify", effect="read")
async def classify(note: Note) -> Intent:
    """Say what the note wants beside the goods."""
    await work(0.02, 0.06)
    text = note.text.lower()
    return Intent(
        language=LANGUAGE_OF_COUNTRY.get(note.country, "en"),
        urgent=any(word in text for word in URGENT),
        chatty=any(word in text for word in GREETINGS) or text.endswith(("?", "\N{FULLWIDTH QUESTION MARK}")),
    )


if __name__ == "__main__":
    agent.run()
