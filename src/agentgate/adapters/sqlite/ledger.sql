-- Lists of keys and ids travel as one JSON parameter, rows to be written as one VALUES list (a row of question marks
-- is repeated as often as needed), and a set of records comes back in one row: every step of a statement gives the
-- interpreter lock away and has to win it back from a busy event loop, so a batch takes few of them.

-- name: read_records
-- What is stored under some keys, expired or not: the records and their ids, in the same order.
SELECT '[' || coalesce(group_concat(ledger.record), '') || ']', json_group_array(ledger.id)
FROM json_each(?) AS wanted
JOIN ledger
    ON ledger.tenant = json_extract(wanted.value, '$[0]')
    AND ledger.target = json_extract(wanted.value, '$[1]')
    AND ledger.caller = json_extract(wanted.value, '$[2]')
    AND ledger.task_type = json_extract(wanted.value, '$[3]')
    AND ledger.business_key = json_extract(wanted.value, '$[4]')
    AND ledger.action = json_extract(wanted.value, '$[5]')

-- name: insert_records
INSERT INTO ledger (tenant, target, caller, task_type, business_key, action, state, expires_at, record)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_records
WITH changed (id, state, expires_at, record) AS (VALUES (?, ?, ?, ?))
UPDATE ledger
SET state = changed.state, expires_at = changed.expires_at, record = changed.record
FROM changed
WHERE ledger.id = changed.id

-- name: delete_records
DELETE FROM ledger WHERE id IN (SELECT value FROM json_each(?))

-- name: read_open
-- Everything that is running or unknown.
SELECT '[' || coalesce(group_concat(record), '') || ']' FROM ledger WHERE state IN ('running', 'unknown')

-- name: read_running
-- A page of running records in key order. What is open is little, so it is sorted rather than all keys walked.
SELECT '[' || coalesce(group_concat(record), '') || ']'
FROM (
    SELECT record
    FROM ledger INDEXED BY ledger_open
    WHERE state IN ('running', 'unknown') AND state = 'running'
        AND (tenant, target, caller, task_type, business_key, action) > (?, ?, ?, ?, ?, ?)
    ORDER BY tenant, target, caller, task_type, business_key, action
    LIMIT ?
)

-- name: list_records
-- A page of live records in key order, of any state or of one that most records have; without what makes them large.
SELECT '[' || coalesce(group_concat(record), '') || ']'
FROM (
    SELECT json_remove(record, '$.payload', '$.outcome.value') AS record
    FROM ledger
    WHERE (tenant, target, caller, task_type, business_key, action) > (?, ?, ?, ?, ?, ?)
        AND (tenant, target, caller, task_type, business_key, action) < (?, ?, ?, ?, ?, ?)
        AND (state IN ('running', 'unknown') OR expires_at > ?)
        AND (? IS NULL OR state = ?)
    ORDER BY tenant, target, caller, task_type, business_key, action
    LIMIT ?
)

-- name: list_failed
-- The same of the failed ones, which are few among the done.
SELECT '[' || coalesce(group_concat(record), '') || ']'
FROM (
    SELECT json_remove(record, '$.payload', '$.outcome.value') AS record
    FROM ledger INDEXED BY ledger_failed
    WHERE state = 'failed'
        AND (tenant, target, caller, task_type, business_key, action) > (?, ?, ?, ?, ?, ?)
        AND (tenant, target, caller, task_type, business_key, action) < (?, ?, ?, ?, ?, ?)
        AND expires_at > ?
    ORDER BY tenant, target, caller, task_type, business_key, action
    LIMIT ?
)

-- name: list_open
-- The same of the running or unknown ones, which never expire.
SELECT '[' || coalesce(group_concat(record), '') || ']'
FROM (
    SELECT json_remove(record, '$.payload', '$.outcome.value') AS record
    FROM ledger INDEXED BY ledger_open
    WHERE state IN ('running', 'unknown')
        AND (tenant, target, caller, task_type, business_key, action) > (?, ?, ?, ?, ?, ?)
        AND (tenant, target, caller, task_type, business_key, action) < (?, ?, ?, ?, ?, ?)
        AND state = ?
    ORDER BY tenant, target, caller, task_type, business_key, action
    LIMIT ?
)

-- name: read_running_due
-- Running records whose time is up, to be extended.
SELECT '[' || coalesce(group_concat(record), '') || ']', json_group_array(id)
FROM ledger INDEXED BY ledger_open
WHERE state IN ('running', 'unknown') AND state = 'running' AND expires_at <= ?

-- name: delete_due
-- Settled records whose time is up, those that expired first.
DELETE FROM ledger WHERE id IN (
    SELECT id
    FROM ledger
    WHERE state IN ('done', 'failed') AND expires_at <= ?
    ORDER BY expires_at, tenant, target, caller, task_type, business_key, action
    LIMIT ?
)

-- name: read_all
SELECT '[' || coalesce(group_concat(record), '') || ']'
FROM (SELECT record FROM ledger ORDER BY tenant, target, caller, task_type, business_key, action)

-- name: raise_epoch
INSERT INTO gateways (id, epoch) VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1

-- name: read_epochs
SELECT coalesce(json_group_object(id, epoch), '{}') FROM gateways

-- name: write_fact
INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: read_fact
SELECT value FROM facts WHERE name = ?
