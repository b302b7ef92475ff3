"""The vocabulary: frozen structs that are the wire format as well."""

from agentgate.model.call import Call, Effect, KeyId, OnDisconnect
from agentgate.model.card import CHECK_PREFIX, PRIORITY_BY_TIER, SKILL_PREFIX, Card, Grade, Skill, Tier, check_type
from agentgate.model.outcome import Outcome, Problem, Status, failure, problem
from agentgate.model.record import Change, Changed, Claim, Claimed, LedgerEvent, Record, RecordState, UnitRef
from agentgate.model.route import Route, RouteSnapshot
from agentgate.model.span import Span, SpanKind

__all__ = [
    "CHECK_PREFIX",
    "PRIORITY_BY_TIER",
    "SKILL_PREFIX",
    "Call",
    "Card",
    "Change",
    "Changed",
    "Claim",
    "Claimed",
    "Effect",
    "Grade",
    "KeyId",
    "LedgerEvent",
    "OnDisconnect",
    "Outcome",
    "Problem",
    "Record",
    "RecordState",
    "Route",
    "RouteSnapshot",
    "Skill",
    "Span",
    "SpanKind",
    "Status",
    "Tier",
    "UnitRef",
    "check_type",
    "failure",
    "problem",
]
