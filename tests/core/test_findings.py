"""What was noticed, by example."""

from __future__ import annotations

import pytest

from agentgate.core.findings import KINDS, Findings

KIND = "cards_differ"


def test_what_is_seen_again_is_the_same_finding() -> None:
    """Folded by kind and subject: it counts on, keeps its first time and has the newest evidence."""
    findings = Findings()
    assert findings.report(KIND, "bank", {"what": "tier"}, tenant="t", at=100.0)
    assert not findings.report(KIND, "bank", {"what": "skill:pay"}, tenant="t", at=160.0)
    [found] = findings.of("t")
    assert (found.kind, found.subject, found.count, found.first_seen, found.last_seen) == (
        KIND,
        "bank",
        2,
        100.0,
        160.0,
    )
    assert found.evidence == {"what": "skill:pay"}
    assert found.advice == KINDS[KIND].advice
    assert findings.totals == {KIND: 2}


def test_a_clock_that_steps_back_does_not_undo_a_sight() -> None:
    """F109: the last time never lies before an earlier sight."""
    findings = Findings()
    findings.report(KIND, "bank", {}, tenant="t", at=100.0)
    findings.report(KIND, "bank", {}, tenant="t", at=40.0)
    assert findings.of("t")[0].last_seen == 100.0


def test_each_tenant_sees_its_own() -> None:
    """I6: the same subject of two tenants is two findings, and each sees one of them, the newest first."""
    findings = Findings()
    findings.report(KIND, "bank", {}, tenant="one", at=1.0)
    findings.report(KIND, "mint", {}, tenant="one", at=2.0)
    findings.report(KIND, "bank", {}, tenant="two", at=3.0)
    assert [found.subject for found in findings.of("one")] == ["mint", "bank"]
    assert [(found.subject, found.count) for found in findings.of("two")] == [("bank", 1)]
    assert findings.of("three") == []


def test_what_was_quiet_for_longest_makes_room() -> None:
    """F110: the registry is bounded; what keeps happening stays, and totals go on counting."""
    findings = Findings(findings_max=2)
    for at, subject in enumerate(["a", "b", "a", "c"]):
        findings.report(KIND, subject, {}, tenant="t", at=float(at))
    assert [found.subject for found in findings.of("t")] == ["c", "a"]
    assert (len(findings), findings.totals[KIND]) == (2, 4)


def test_an_unknown_kind_is_a_defect() -> None:
    """A finding without a row in the table would have no advice."""
    with pytest.raises(KeyError):
        Findings().report("odd", "bank", {}, tenant="t", at=0.0)
