"""The vocabulary: frozen structs that are the wire format as well."""

from agentgate.model.agent_settings import AgentQuota, AgentSettings
from agentgate.model.call import DEFAULT_TENANT, Call, Effect, KeyId, OnDisconnect
from agentgate.model.card import (
    CHECK_PREFIX,
    PRIORITY_BY_TIER,
    SKILL_PREFIX,
    Card,
    Exclusive,
    Grade,
    Skill,
    Tier,
    check_type,
)
from agentgate.model.finding import Finding
from agentgate.model.identity import AGENT_SCOPE, NEIGHBOUR, OBSERVE, OPERATE, SCOPES, SUBMIT, Identity
from agentgate.model.outcome import Outcome, Problem, Status, failure, problem
from agentgate.model.record import Change, Changed, Claim, Claimed, LedgerEvent, Record, RecordState, UnitRef
from agentgate.model.route import Route, RouteSnapshot
from agentgate.model.span import Span, SpanKind

__all__ = [
    "AGENT_SCOPE",
    "CHECK_PREFIX",
    "DEFAULT_TENANT",
    "NEIGHBOUR",
    "OBSERVE",
    "OPERATE",
    "PRIORITY_BY_TIER",
    "SCOPES",
    "SKILL_PREFIX",
    "SUBMIT",
    "AgentQuota",
    "AgentSettings",
    "Call",
    "Card",
    "Change",
    "Changed",
    "Claim",
    "Claimed",
    "Effect",
    "Exclusive",
    "Finding",
    "Grade",
    "Identity",
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
