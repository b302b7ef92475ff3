"""Names of targets."""

from __future__ import annotations


def skill(task_type: str) -> str:
    """The target "whoever offers this task type": `ctx.call(skill("reserve"), "reserve", order_id)`."""
    return f"skill:{task_type}"
