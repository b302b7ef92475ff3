"""The vocabulary: frozen structs that are the wire format as well."""

from agentgate.model.agent_settings import AS_DECLARED, AgentQuota, AgentSettings, SwitchedOff
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
from agentgate.model.http import Endpoint, HttpAnswer, HttpEnd, HttpFailure
from agentgate.model.identity import AGENT_SCOPE, NEIGHBOUR, NOBODY, OBSERVE, OPERATE, SCOPES, SUBMIT, Identity
from agentgate.model.lock import LockMode, LockPlace, LockScope, LockView
from agentgate.model.names import logged, plain, qualified, tenant_of, told
from agentgate.model.outcome import Outcome, Problem, Status, failure, problem
from agentgate.model.record import Change, Changed, Claim, Claimed, LedgerEvent, Record, RecordState, UnitRef
from agentgate.model.route import Route, RouteSnapshot
from agentgate.model.span import LastAttempt, Span, SpanKind, in_order, unfolded
from agentgate.model.wait import Knot, KnotStep, Wait, WaitKind

__all__ = [
    "AGENT_SCOPE",
    "AS_DECLARED",
    "CHECK_PREFIX",
    "DEFAULT_TENANT",
    "NEIGHBOUR",
    "NOBODY",
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
    "Endpoint",
    "Exclusive",
    "Finding",
    "Grade",
    "HttpAnswer",
    "HttpEnd",
    "HttpFailure",
    "Identity",
    "KeyId",
    "Knot",
    "KnotStep",
    "LastAttempt",
    "LedgerEvent",
    "LockMode",
    "LockPlace",
    "LockScope",
    "LockView",
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
    "SwitchedOff",
    "Tier",
    "UnitRef",
    "Wait",
    "WaitKind",
    "check_type",
    "failure",
    "in_order",
    "logged",
    "plain",
    "problem",
    "qualified",
    "tenant_of",
    "told",
    "unfolded",
]
