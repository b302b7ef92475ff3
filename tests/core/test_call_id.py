"""The id of a call over HTTP is its key in one word, without the tenant."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgate.core.call_id import ID_LENGTH_MAX, PREFIX, call_id, key_of
from agentgate.core.keys import PART_LENGTH_MAX
from agentgate.model import KeyId

KEY = KeyId("default", "stock", "shop", "reserve", "order_123", "run")
ID = "klaVzdG9ja6RzaG9wp3Jlc2VydmWpb3JkZXJfMTIzo3J1bg"
URL_SAFE = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

parts = st.text(st.characters(exclude_categories=["Cs"]), max_size=PART_LENGTH_MAX)


@given(st.tuples(parts, parts, parts, parts, parts, parts))
@example(("t", *["\U0001f600" * PART_LENGTH_MAX] * 5))
def test_an_id_names_its_key(six: tuple[str, str, str, str, str, str]) -> None:
    """Whatever the parts, the id fits into a URL, reads back, and takes its tenant from whoever asks."""
    key = KeyId(*six)
    text = call_id(key)
    assert set(text) <= URL_SAFE
    assert len(text) <= ID_LENGTH_MAX
    assert key_of(text, key.tenant) == key
    assert key_of(text, "another") == key._replace(tenant="another")


def test_an_id_never_changes() -> None:
    """Clients keep ids, also over a new release of the gate."""
    assert call_id(KEY) == ID
    assert call_id(KEY._replace(tenant="another")) == ID


@pytest.mark.parametrize("position", range(len(ID)))
def test_there_is_one_way_to_write_it(position: int) -> None:
    """A changed, missing or additional character makes it another call's id, or none."""
    for changed in ("A", "-", "=", "é", "\n", "", "AB"):
        forged = ID[:position] + changed + ID[position + 1 :]
        found = key_of(forged, "default")
        assert found is None or call_id(found) == forged


@given(
    st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda raw: PREFIX + urlsafe_b64encode(raw).decode()))
)
@example("")
@example(PREFIX)
@example(PREFIX + "A" * 1_000_000)
@example("k\ud800")
@example(PREFIX + urlsafe_b64encode(b"\x95\xa1\xff\xa0\xa0\xa0\xa0").decode())
def test_garbage_never_raises(text: str) -> None:
    """I6: whatever is asked for, the answer is a key or None."""
    found = key_of(text, "default")
    assert found is None or call_id(found) == text
