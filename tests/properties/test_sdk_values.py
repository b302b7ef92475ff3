"""Values on their way in and out of handlers: whatever it is, there is JSON or a sentence that says why not."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.payload import PayloadOptions, decode
from agentgate.errors import CODES, CallFailed, ConfigError, Rejected, TryLater, WireError
from agentgate.model import failure
from agentgate.model.card import Skill
from agentgate.sdk.answers import InputDefect, error_answer, safe_text
from agentgate.sdk.calling import call_failed
from agentgate.sdk.handler import Handler
from agentgate.sdk.payload import BYTES_MAX, DEPTH_MAX, ValueDefect, checked_json
from agentgate.sdk.typed import Shape

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=True) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Tagged(msgspec.Struct):
    name: str
    n: int = 0


@dataclasses.dataclass
class Order:
    id: str
    n: int


class Receipt(TypedDict):
    id: str
    shelf: str | None


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def contains_itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@given(value=JSON)
def test_what_is_sent_is_what_the_gate_takes(value: Any) -> None:
    """Kind 13: a value becomes JSON that the gate accepts unchanged, or it does not leave."""
    try:
        raw = checked_json(value, BYTES_MAX)
    except ValueDefect:
        return
    assert decode(bytes(raw), PayloadOptions()) == json.loads(bytes(raw))


@given(value=JSON)
def test_nothing_changes_silently(value: Any) -> None:
    """Kind 13: NaN and infinity never become null, a NUL never travels."""
    text = repr(value)
    broken = any(not math.isfinite(number) for number in floats_of(value))
    try:
        checked_json(value, BYTES_MAX)
    except ValueDefect:
        assert broken or "\\x00" in text or "\\ud" in text
    else:
        assert not broken


def floats_of(value: Any) -> list[float]:
    if isinstance(value, float):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for part in parts for number in floats_of(part)]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, "NaN and infinity have no JSON form - at `$`"),
        ({"a": [0.5, {"b": math.inf}]}, "at `$.a[1].b`"),
        (Tagged("\x00"), "NUL"),
        ({"\x00": 1}, "NUL"),
        ("\ud800", "not Unicode - at `$`"),
        ({"a": ["x", "\ud800"]}, "at `$.a[1]`"),
        ({"order": Order(id="\udfff", n=1)}, "at `$.order.id`"),
        ({"t": Tagged(name="\udfff")}, "at `$.t.name`"),
        (nested(DEPTH_MAX + 1), "nested deeper than 64"),
        (nested(5000), "nested deeper than 64"),
        (contains_itself(), "containing itself"),
        ({"f": [1, object()]}, "a object has no JSON form - at `$.f[1]`"),
        ((number for number in range(3)), "a generator has no JSON form"),
        ({(1, 2): 3}, "a tuple has no JSON form"),
        ("x" * BYTES_MAX, "262146 bytes of JSON, at most 262144 may travel"),
    ],
    ids=itertools.count(),
)
def test_defects_are_named_with_their_place(value: Any, says: str) -> None:
    """Kind 13: each defect has a sentence that says what and where."""
    with pytest.raises(ValueDefect) as defect:
        checked_json(value, BYTES_MAX)
    assert says in str(defect.value)


@pytest.mark.parametrize(
    "value",
    [None, {"a": None, "b": [None]}, '\\u0000 "[[[' * 30, nested(DEPTH_MAX), {"nullable": "null"}, [[]] * 70, b"bytes"],
    ids=lambda value: repr(value)[:20],
)
def test_what_only_looks_odd_passes(value: Any) -> None:
    """Escapes in text, nulls, brackets in text and breadth are no defects."""
    checked_json(value, BYTES_MAX)


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class NotText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307 - as a careless library does


@given(
    text=st.text(alphabet=st.characters(exclude_categories=())), kind=st.sampled_from([ValueError, Rejected, TryLater])
)
def test_every_error_is_an_answer_that_can_travel(text: str, kind: Callable[[str], Exception]) -> None:
    """Kind 13: whatever an exception says, its answer is short, readable JSON."""
    answer = error_answer(kind(text), stopped=False)
    assert answer.error is not None
    assert len(answer.error.detail) <= 2000
    try:
        decode(msgspec.json.encode(answer.error), PayloadOptions())
    except WireError as error:
        pytest.fail(str(error))


@pytest.mark.parametrize("error", [Silent(), NotText()], ids=["raises", "no text"])
def test_an_exception_that_cannot_speak_is_an_answer_too(error: Exception) -> None:
    """Kind 13: str() of an exception that fails itself does not lose the answer."""
    assert "cannot be read" in safe_text(error)


def waited(code: str) -> CallFailed:
    """How a wait of the handler ended, which it let pass."""
    error = failure(code).error
    assert error is not None
    return call_failed(error)


@pytest.mark.parametrize(
    ("error", "stopped", "code", "fault", "sent", "after_ms"),
    [
        (Rejected("out of stock"), False, "rejected", "rejected", True, None),
        (TryLater("soon", after=1.5), False, "overloaded", "throttled", False, 1500),
        (TryLater(after=0), False, "overloaded", "throttled", False, 0),
        (TryLater("full", everyone=True), False, "rate_limited", "throttled", False, None),
        (InputDefect("wrong"), False, "bad_request", "caller", False, None),
        (ValueDefect("wrong"), False, "malformed_output", "malformed", True, None),
        (ValueError("x"), False, "handler_error", "handler_error", True, None),
        (SystemExit(3), False, "handler_error", "handler_error", True, None),
        (KeyboardInterrupt(), True, "handler_error", "handler_error", True, None),
        (GeneratorExit(), False, "handler_error", "handler_error", True, None),
        (waited("needs_human"), False, "needs_human", "refused", True, None),
        (waited("promise_broken"), False, "needs_human", "refused", True, None),
        (waited("deadlock"), False, "needs_human", "refused", True, None),
        (waited("deadline_exceeded"), False, "handler_error", "handler_error", True, None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_the_table_of_ends(  # the columns of the table in sdk.answers
    error: BaseException, *, stopped: bool, code: str, fault: str, sent: bool, after_ms: int | None
) -> None:
    """B4: each way a handler can end has its code, its fault, and whether anything may have happened."""
    problem = error_answer(error, stopped=stopped).error
    assert problem is not None
    assert (problem.code, problem.fault, problem.sent, problem.retry_after_ms) == (code, fault, sent, after_ms)


def test_what_waited_in_vain_has_the_advice_of_its_cause() -> None:
    """I3: `needs_human` has several causes, and each its own way out; the one of further down is passed on."""
    theirs = failure("needs_human", advice="ask Ada").error
    assert theirs is not None
    for error, says in (
        (waited("deadlock"), "It gave way"),
        (waited("promise_broken"), "The signal will not come"),
        (waited("needs_human"), CODES["needs_human"].advice),
        (call_failed(theirs), "ask Ada"),
    ):
        problem = error_answer(error, stopped=False).error
        assert problem is not None
        assert problem.advice.startswith(says)


def test_a_rejection_may_carry_details() -> None:
    """The detail of a Rejected is shown as JSON, and is left out when it has none."""
    shown = error_answer(Rejected("no", detail={"short": 2}), stopped=False).error
    hidden = error_answer(Rejected("no", detail=object()), stopped=False).error
    assert shown is not None
    assert hidden is not None
    assert shown.detail == 'no: {"short":2}'
    assert hidden.detail.startswith("no: ")


def handler(function: Callable[..., Any], task_type: str = "t") -> Handler:
    return Handler(function, Skill(task_type=task_type), globals())


def test_wrong_input_says_what_and_where() -> None:
    """EXPERIENCE: typed handlers are validated on the way in."""

    def confirm(order: Order) -> None: ...

    checked = handler(confirm, "confirm")
    assert checked.arguments({"id": "a", "n": 1}, None) == (Order("a", 1),)
    with pytest.raises(InputDefect, match=r"payload of `confirm`: Expected `int`, got `str` - at `\$.n`"):
        checked.arguments({"id": "a", "n": "1"}, None)


def test_wrong_output_says_what_and_where() -> None:
    """EXPERIENCE: typed handlers are validated on the way out, dataclasses included."""

    def confirm(order: Order) -> list[Receipt]:
        raise NotImplementedError

    checked = handler(confirm, "confirm")
    assert bytes(checked.result([{"id": "a", "shelf": None}], BYTES_MAX)) == b'[{"id":"a","shelf":null}]'
    with pytest.raises(ValueDefect, match=r"result of `confirm`: .*`id`.* - at `\$\[0\]`"):
        checked.result([{"shelf": "b"}], BYTES_MAX)


def test_a_dataclass_that_lies_about_its_fields_is_found() -> None:
    """A returned object is checked by what it holds, not by its class."""

    def load(payload: Any) -> Order:
        raise NotImplementedError

    with pytest.raises(ValueDefect, match=r"at `\$.n`"):
        handler(load).result(Order(id="a", n="many"), BYTES_MAX)  # type: ignore[arg-type]  # the lie


def test_schemas_stand_alone() -> None:
    """A published schema has every definition it refers to."""
    shape = Shape(dict[str, list[Order | None]], "here")
    assert shape.schema is not None
    text = json.dumps(shape.schema)
    for name in {part.split('"')[0] for part in text.split("#/$defs/")[1:]}:
        assert name in shape.schema["$defs"]


@pytest.mark.parametrize("declared", [Any, object], ids=["Any", "object"])
def test_any_accepts_everything_and_publishes_nothing(declared: Any) -> None:
    """No annotation, Any and object are no constraint."""
    shape = Shape(declared, "here")
    assert shape.schema is None
    assert shape.take({"a": 1}) == {"a": 1}


def test_models_of_pydantic_are_types_too() -> None:
    """EXPERIENCE: pydantic when it is installed, also inside other types."""
    pydantic = pytest.importorskip("pydantic")

    class Line(pydantic.BaseModel):  # type: ignore[misc,name-defined]  # imported only if it is there
        sku: str
        n: int = pydantic.Field(gt=0)

    class Basket(pydantic.BaseModel):  # type: ignore[misc,name-defined]  # imported only if it is there
        lines: list[Line]

    shape = Shape(list[Basket], "here")
    assert shape.schema is not None
    assert set(shape.schema["$defs"]) >= {"Line"}
    (basket,) = shape.take([{"lines": [{"sku": "a", "n": 2}]}])
    assert basket.lines[0].n == 2
    with pytest.raises(ValueError, match="greater than 0"):
        shape.take([{"lines": [{"sku": "a", "n": 0}]}])
    raw = checked_json([basket], BYTES_MAX)
    assert bytes(raw) == b'[{"lines":[{"sku":"a","n":2}]}]'
    shape.check(raw)


def no_parameter() -> None: ...
def three(a: Any, b: Any, c: Any) -> None: ...
def unknown_name(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the mistake under test
def no_json(a: Callable[[], None]) -> None: ...
async def yields(a: Any) -> Any:
    yield a


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_parameter, "takes 0 parameters; it takes (payload) or (payload, ctx)"),
        (three, "takes 3 parameters"),
        (unknown_name, "name 'Nowhere' is not defined"),
        (no_json, "cannot travel as JSON; use a dataclass"),
        (yields, "yields; a handler returns its result once"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_handler_that_cannot_work_is_refused_when_declared(function: Callable[..., Any], says: str) -> None:
    """A mistake in a signature is one sentence at import, not a failure at the first call."""
    with pytest.raises(ConfigError) as error:
        handler(function)
    assert says in str(error.value)
