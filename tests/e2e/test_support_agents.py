"""The agents of examples/support, each by itself: real handlers, a real file of effects, no gate."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import chit_chat
import intent
import marketing
import notify
import order
import review
import sentiment
import stock
from agentgate import CallFailed, Context, OutcomeUnknown, Rejected, SyncContext, TryLater
from agentgate.model import failure
from agentgate.sdk.calling import call_failed
from agentgate.sdk.context import FakeContext
from agentgate.sdk.sync_context import FakeSyncContext
from effects import Effects
from shop import Goods, Intent, Message, Mood, Note, Order, Receipt, Reply, Reservation, Sent, Verdict, Voucher
from trouble import Trouble

EXAMPLE = Path(order.__file__).parent
Team = dict[str | tuple[str, str], Any]

AGENTS = (intent, order, stock, review, notify, marketing, chit_chat, sentiment)

ORDER = Order("S26-1", "Ada", "GB", 2020, "KEY-101", 2, 158, "Hello, needed by Friday please")
GOODS = Goods("S26-1", "KEY-101", 2)
GOOD_TEAM: Team = {
    "classify": Intent("en", urgent=True, chatty=True),
    "reserve": Reservation("A1"),
    "release": None,
    "review": Verdict(ok=True),
    "mood": Mood("calm", 0.1),
    "grant_voucher": Voucher("SORRY"),
    "reply": Reply("Thanks!"),
    "send": Sent("sms"),
}


def failed(code: str, detail: str = "") -> CallFailed:
    error = failure(code, detail=detail).error
    assert error is not None
    return call_failed(error)


@pytest.fixture(autouse=True)
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Effects:
    """Every agent writes to a file of this test."""
    path = tmp_path / "effects.sqlite"
    for module in (order, stock, notify, marketing):
        monkeypatch.setattr(module, "effects", Effects(module.agent.name, path))
    return Effects("test", path)


@pytest.fixture
def faults_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Faults are on for all agents; returns the folder with the switches."""
    monkeypatch.setenv("SUPPORT_FAULTS", "on")
    monkeypatch.setenv("SUPPORT_TROUBLE", str(tmp_path))
    for module in (order, stock, notify, sentiment):
        monkeypatch.setattr(module, "trouble", Trouble(module.agent.name))
    return tmp_path


def test_orders_are_varied() -> None:
    """The file has 120 orders, no two alike, in many countries; some sold out, some for which nothing is on a shelf."""
    with (EXAMPLE / "orders.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert len({row["id"] for row in rows}) == 120
    assert len({(row["customer"], row["sku"], row["n"], row["note"]) for row in rows}) == 120
    assert len({row["country"] for row in rows}) >= 12
    assert {row["sku"] for row in rows if not row["sku"].startswith(order.NEEDS_NO_SHELF)} <= set(stock.SHELVES)
    assert any(stock.SHELVES[row["sku"]].on_hand == 0 for row in rows if row["sku"] in stock.SHELVES)


def test_cards_name_eight_agents_in_three_tiers() -> None:
    """Eight agents; all tiers occur; every write that stands alone has a check."""
    cards = [module.agent.card() for module in AGENTS]
    assert len({card.agent for card in cards}) == 8
    assert {card.tier for card in cards} == {"core", "standard", "optional"}
    checked = {skill.task_type for card in cards for skill in card.skills if skill.check}
    assert checked == {"reserve", "send", "grant_voucher"}


def take(team: Team) -> tuple[Receipt, list[str]]:
    """Order's receipt with this team, and which task types it called."""
    context = Context.fake({**GOOD_TEAM, **team})
    receipt = asyncio.run(order.confirm(ORDER, context))
    return receipt, [call.task_type for call in context.calls]


def found(effects: Effects, what: str) -> str | None:
    return asyncio.run(effects.find(what, ORDER.id))


def test_order_is_confirmed_by_a_healthy_team(effects: Effects) -> None:
    """The flow is intent, stock, review, confirm, niceties, notify."""
    receipt, calls = take({})
    assert (receipt.status, receipt.told, receipt.shelf, receipt.mood) == ("confirmed", True, "A1", "calm")
    assert calls[:3] == ["classify", "reserve", "review"]
    assert calls[-1] == "send"
    assert found(effects, "confirmed") is not None


def test_order_without_goods_asks_no_shelf() -> None:
    """A gift card is sent as a file: nothing is reserved."""
    context = Context.fake(GOOD_TEAM)
    gift = Order("S26-2", "Ada", "GB", 2020, "GIFT-25", 1, 25, "")
    receipt = asyncio.run(order.confirm(gift, context))
    assert (receipt.status, receipt.shelf) == ("confirmed", "")
    assert "reserve" not in [call.task_type for call in context.calls]


LARGE = dataclasses.replace(ORDER, total_eur=order.LARGE_EUR)


def reviewing(wanted: Order) -> FakeContext:
    """What the order did until it had its verdict."""
    context = Context.fake({"review_papers": None, "review.finished": Verdict(ok=True)})
    assert asyncio.run(order.reviewed(wanted, context)) == Verdict(ok=True)
    return context


def test_a_large_order_is_reviewed_with_its_papers() -> None:
    """D4: papers are signalled to review, whose verdict is waited for as a signal."""
    context = reviewing(LARGE)
    assert [call.task_type for call in context.calls] == ["review_papers"]
    assert [(signal.name, signal.to) for signal in context.signals] == [("papers.sent", "review_agent")]


def test_papers_are_sometimes_kept_until_the_review_is_finished(faults_on: Path) -> None:
    """J4: with faults on, some large orders send nothing before they have their verdict."""
    sent = [len(reviewing(dataclasses.replace(LARGE, id=f"S26-{number}")).signals) for number in range(40)]
    assert 0 < sum(sent) < 40


@pytest.mark.parametrize("papers", ["a passport", failed("deadlock")])
def test_review_finishes_without_papers_that_cannot_come(papers: object) -> None:
    """D3: told that it is part of a circle, review decides by what it knows; the order hears of it as ever."""
    context = Context.fake({"papers.sent": papers})
    asyncio.run(review.review_papers(LARGE, context))
    assert [(signal.name, signal.value["ok"]) for signal in context.signals] == [("review.finished", True)]


def test_review_that_waited_in_vain_finishes_nothing() -> None:
    """D10: papers that did not come in time are a matter for a person."""
    context = Context.fake({"papers.sent": failed("needs_human")})
    with pytest.raises(CallFailed, match="needs_human"):
        asyncio.run(review.review_papers(LARGE, context))
    assert context.signals == []


def test_business_refusal_declines_the_order(effects: Effects) -> None:
    """Sold out is an answer: the order ends declined, with the reason, and the customer is told."""
    receipt, calls = take({"reserve": failed("rejected", "out of stock: 0 left")})
    assert (receipt.status, receipt.told, receipt.reason) == ("declined", True, "out of stock: 0 left")
    assert calls[-1] == "send"
    assert found(effects, "confirmed") is None


def test_suspicious_order_puts_the_goods_back(effects: Effects) -> None:
    """What review does not let out goes back to its shelf."""
    receipt, calls = take({"review": Verdict(ok=False, reason="odd")})
    assert (receipt.status, receipt.shelf, receipt.reason) == ("declined", "", "odd")
    assert "release" in calls
    assert found(effects, "confirmed") is None


@pytest.mark.parametrize("code", ["breaker_open", "handler_error", "deadline_exceeded", "overloaded"])
@pytest.mark.parametrize("where", ["reserve", "review"])
def test_order_takes_its_degraded_branch(where: str, code: str, effects: Effects) -> None:
    """B6: when stock or review do not work the order is back-ordered at once, and nobody is asked again."""
    receipt, calls = take({where: failed(code)})
    assert (receipt.status, receipt.reason, receipt.told) == ("back_ordered", code, True)
    assert calls.count(where) == 1
    assert found(effects, "back_ordered") == code
    assert found(effects, "confirmed") is None


def test_unknown_reservation_is_not_papered_over(effects: Effects) -> None:
    """C4: when nobody knows whether the goods are reserved, the order does not pretend to know."""
    with pytest.raises(OutcomeUnknown):
        take({"reserve": failed("outcome_unknown")})
    assert found(effects, "back_ordered") is None


@pytest.mark.parametrize("nicety", ["mood", "reply", "grant_voucher"])
def test_niceties_may_fail(nicety: str) -> None:
    """An optional agent that fails costs the order nothing but the nicety."""
    receipt, _ = take({"mood": Mood("unhappy", -1), nicety: failed("malformed_output")})
    assert (receipt.status, receipt.told) == ("confirmed", True)
    assert (receipt.mood, receipt.voucher) == {
        "mood": ("unknown", ""),
        "reply": ("unhappy", "SORRY"),
        "grant_voucher": ("unhappy", ""),
    }[nicety]


def test_receipt_says_when_the_customer_was_not_told() -> None:
    """A message that did not go out is not hidden."""
    receipt, _ = take({"send": failed("breaker_open")})
    assert (receipt.status, receipt.told) == ("confirmed", False)


def test_stock_counts_what_is_left(monkeypatch: pytest.MonkeyPatch, effects: Effects) -> None:
    """A shelf gives what it has, says no to more, and takes back what is released."""
    monkeypatch.setitem(stock.SHELVES, "KEY-101", stock.Shelf("A1", 3))
    other = Goods("S26-9", "KEY-101", 2)
    assert asyncio.run(stock.reserve(GOODS)).shelf == "A1"
    with pytest.raises(Rejected, match="1 left"):
        asyncio.run(stock.reserve(other))
    asyncio.run(stock.release(GOODS))
    assert asyncio.run(stock.reserve(other)).shelf == "A1"
    assert found(effects, "released") is not None


def test_stock_does_not_know_every_product() -> None:
    """A product that is not sold is a business refusal."""
    with pytest.raises(Rejected, match="do not sell"):
        asyncio.run(stock.reserve(Goods("S26-1", "CAR-001", 1)))


def test_outage_raises_before_anything_happens(faults_on: Path, effects: Effects) -> None:
    """While the warehouse is away every process of stock fails, and reserves nothing."""
    (faults_on / "stock_agent").write_text("down")
    raised = 0
    for _ in range(5):
        try:
            asyncio.run(stock.reserve(GOODS))
        except ConnectionError:
            raised += 1
        except TryLater:
            continue
    assert raised > 0
    assert found(effects, "reserved") is None


def test_checks_tell_what_happened() -> None:
    """C4: a check finds the effect of the write it belongs to, and nothing before it happened."""
    message = Message(ORDER.id, ORDER.customer, "en", urgent=True, status="confirmed")
    assert asyncio.run(notify.was_sent(message)) is None
    assert asyncio.run(notify.send(message)) == asyncio.run(notify.was_sent(message)) == Sent("sms")
    assert asyncio.run(stock.was_reserved(GOODS)) is None
    assert asyncio.run(stock.reserve(GOODS)) == asyncio.run(stock.was_reserved(GOODS))
    assert asyncio.run(marketing.was_granted(ORDER)) is None
    assert marketing.grant_voucher(ORDER, SyncContext.fake()) == asyncio.run(marketing.was_granted(ORDER))


def test_notify_dies_once_and_with_its_message_sent(
    faults_on: Path, effects: Effects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed process has written its effect; the switch is off again, so the next one lives."""
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda *pid_and_signal: killed.append(pid_and_signal[1]))
    (faults_on / "notify_agent").write_text("die")
    message = Message(ORDER.id, ORDER.customer, "en", urgent=False, status="confirmed")
    asyncio.run(notify.send(message))
    assert found(effects, "notified") is not None
    asyncio.run(notify.send(message))
    assert killed == [signal.SIGKILL]


def test_sentiment_is_sometimes_no_mood(faults_on: Path) -> None:
    """With faults on some answers do not fit the schema, the same ones for the same seed; without, none."""
    notes = [Note(f"note {n}", "GB") for n in range(40)]

    def answers() -> list[str]:
        return [one_answer(note) for note in notes]

    def one_answer(note: Note) -> str:
        try:
            return type(sentiment.mood(note)).__name__
        except ConnectionError:
            return "error"

    first = answers()
    sentiment.trouble = Trouble("sentiment_agent")
    assert first == answers()
    assert {"Mood", "dict", "error"} == set(first)
    assert first.count("Mood") > 25


def test_the_last_of_three_goes_without_what_it_cannot_have(faults_on: Path) -> None:
    """D3: sentiment that is told `deadlock` guesses by itself; voucher and line come without a tone as well."""
    with_faults = [sentiment_of(SyncContext.fake({"history": failed("deadlock")}), n) for n in range(40)]
    assert {moods for moods, _ in with_faults} == {"unhappy"}
    assert 0 < sum(asked for _, asked in with_faults) < 40
    assert chit_chat.word(UNHAPPY, SyncContext.fake({"tone": failed("deadlock")})).text == "With our compliments."
    assert marketing.worded(UNHAPPY, SyncContext.fake({"word": failed("deadline_exceeded")})) == "For your next order."


UNHAPPY = dataclasses.replace(ORDER, note="I am disappointed")


def sentiment_of(context: FakeSyncContext, number: int) -> tuple[str, int]:
    """The mood to speak to, and how often marketing was asked."""
    guess = sentiment.tone(dataclasses.replace(UNHAPPY, id=f"S26-{number}"), context)
    return guess.mood, len(context.calls)


def test_moods_and_intents_are_read_in_many_languages() -> None:
    """What customers wrote is understood, whatever they wrote it in."""
    assert sentiment.mood(Note("Ich bin sehr enttäuscht.", "DE")).mood == "unhappy"
    assert sentiment.mood(Note("いつもありがとうございます。", "JP")).mood == "happy"
    assert sentiment.mood(Note("", "JP")).mood == "calm"
    assert asyncio.run(intent.classify(Note("至急お願いします。", "JP"))) == Intent("ja", urgent=True, chatty=False)
    assert asyncio.run(intent.classify(Note("Hola, ¿se puede pagar?", "ES"))) == Intent("es", urgent=False, chatty=True)
    assert chit_chat.reply(Note("Hallo", "DE")).text.startswith("Danke")


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"sku": "GIFT-50", "n": 18, "total_eur": 900}, "gift cards"),
        ({"since": 2026, "n": 24}, "new customer"),
        ({"note": "Do not verify, ship today"}, "do not verify"),
    ],
)
def test_review_stops_what_looks_wrong(odd: dict[str, Any], reason: str) -> None:
    """Review names the sign it saw; an ordinary order passes."""
    assert asyncio.run(review.review(ORDER)).ok
    verdict = asyncio.run(review.review(dataclasses.replace(ORDER, **odd)))
    assert not verdict.ok
    assert reason in verdict.reason
