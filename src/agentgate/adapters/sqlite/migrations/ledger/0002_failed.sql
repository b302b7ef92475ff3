-- What an operator looks for: the failed ones among a day of records.
CREATE INDEX ledger_failed ON ledger (tenant, target, caller, task_type, business_key, action) WHERE state = 'failed';
