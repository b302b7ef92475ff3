CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE gateways (
    id TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL -- of its last start
);

CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    target TEXT NOT NULL,
    caller TEXT NOT NULL,
    task_type TEXT NOT NULL,
    business_key TEXT NOT NULL,
    action TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'unknown')),
    expires_at REAL NOT NULL, -- wall seconds since the epoch
    record TEXT NOT NULL,
    UNIQUE (tenant, target, caller, task_type, business_key, action)
);

CREATE INDEX ledger_failed ON ledger (tenant, target, caller, task_type, business_key, action) WHERE state = 'failed';

CREATE INDEX ledger_open ON ledger (state) WHERE state IN ('running', 'unknown');

CREATE INDEX ledger_settled ON ledger (expires_at) WHERE state IN ('done', 'failed');

