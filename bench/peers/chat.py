"""What gateways to language models take and give: a chat completion whose question is the payload."""

from __future__ import annotations

from typing import Final

import msgspec

MODEL: Final = "bench"
KEY: Final = "not-a-key"


def question(payload: bytes) -> bytes:
    """The body of a request."""
    return msgspec.json.encode({"model": MODEL, "messages": [{"role": "user", "content": payload.decode()}]})


def completion(value: bytes) -> bytes:
    """The body of the answer."""
    message = {"role": "assistant", "content": value.decode()}
    return msgspec.json.encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 60, "completion_tokens": 20, "total_tokens": 80},
        }
    )
