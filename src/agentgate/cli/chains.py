"""`agentgate chains`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from agentgate.cli import exits, gate_api
from agentgate.cli.exits import CommandError
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import STATE_STYLES, console, print_json, say, shown

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

Span = dict[str, Any]


def chains(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A trace id, an idempotency key, or a business key.")],
    url: Url = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Everything one call led to, with times and errors, as a tree.

    A call has its line once it has ended; what is waited for now stands below, as in `agentgate waits`.

    Example: agentgate chains order_123
    """
    found = gate_api.read(url, "v1", "chains", key, missing_ok=True)
    if found is None:
        raise CommandError(f"nothing is known of {key!r}; try the business key or the trace id of a call", exits.FAILED)
    if as_json:
        print_json(found)
        return
    for tree in trees_of(found["spans"]):
        console().print(tree)
    _show_waits(found["waits"], found["at"])
    if found["truncated"]:
        say(f"only the first {len(found['spans'])} spans are shown")


def _show_waits(waits: list[dict[str, Any]], at: float) -> None:
    """What has no span yet, because it has not ended."""
    if not waits:
        return
    from agentgate.cli.wait_trees import trees_of as wait_trees_of
    from agentgate.model import Wait

    console().print("open now:", style="bold")
    for tree in wait_trees_of(msgspec.convert(waits, tuple[Wait, ...]), at):
        console().print(tree)


def trees_of(spans: list[Span]) -> list[Tree]:
    """One tree a root; a span whose parent is not among them is a root."""
    known = {span["span_id"] for span in spans}
    children: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        parent = span.get("parent_id", "")
        children[parent if parent in known else ""].append(span)
    return [_tree(root, children) for root in children[""]]


def _tree(root: Span, children: dict[str, list[Span]]) -> Tree:
    """Without recursion: how deep a chain is, is not up to us."""
    from rich.tree import Tree

    tree = Tree(_line(root))
    open_nodes = [(root, tree)]
    while open_nodes:
        span, node = open_nodes.pop()
        open_nodes.extend((child, node.add(_line(child))) for child in children.pop(span["span_id"], []))
    return tree


def _line(span: Span) -> Text:
    from rich.text import Text

    status = span.get("status", "done")
    text = Text()
    if span["kind"] == "attempt":
        text.append(f"attempt {span.get('attempt', 0)}", style="dim")
        text.append(f" at {shown(span.get('instance', ''))}")
    else:
        text.append(shown(f"{span['caller']} → {span['target']}"), style="bold")
        text.append(shown(f" {span['task_type']} {span.get('business_key', '')}".rstrip()))
    text.append(f"  {status}", style=STATE_STYLES.get(status, ""))
    if span.get("code"):
        text.append(f" {shown(span['code'])}", style="red")
    text.append(f"  {span.get('wait_ms', 0.0):.1f} ms", style="cyan")
    for name, word in (("gap_ms", "after"), ("queue_ms", "queued"), ("handler_ms", "handler")):
        if span.get(name):
            text.append(f", {word} {span[name]:.1f}", style="dim")
    for flag in ("replayed", "joined", "degraded"):
        if span.get(flag):
            text.append(f" {flag}", style="magenta")
    for note in span.get("notes", ()):
        if note.startswith("would_"):
            text.append(f" {shown(note)}", style="yellow")
    if span.get("detail"):
        text.append(f"  {shown(span['detail'])[:200]}", style="dim")
    return text
