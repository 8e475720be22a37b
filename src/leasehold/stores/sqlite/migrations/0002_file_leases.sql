-- Views under the names that the contract of file leases gives them; times are Unix seconds.

-- Leases on paths, and on virtual names such as service://db. A revoked lease shows as released.
CREATE VIEW file_leases AS
SELECT
    lease_id AS id,
    resource AS file_path,
    holder AS agent_id,
    issued_at_ns / 1000000000 AS created_at,
    expires_at_ns / 1000000000 AS expires_at,
    ttl_ns / 1000000000 AS ttl_seconds,
    CASE status WHEN 'revoked' THEN 'released' ELSE status END AS status,
    renewal_count,
    max_renewals,
    max(issued_at_ns, coalesce(last_renewed_at_ns, 0), coalesce(terminated_at_ns, 0)) / 1000000000
        AS updated_at,
    tenant
FROM leases
WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);

-- Other leases are in none of these, and cost nothing more.
CREATE INDEX file_leases_by_path ON leases
    (resource, CASE status WHEN 'revoked' THEN 'released' ELSE status END)
    WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);
CREATE INDEX file_leases_by_agent ON leases
    (holder, CASE status WHEN 'revoked' THEN 'released' ELSE status END)
    WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);
CREATE INDEX file_leases_by_expiry ON leases (expires_at_ns / 1000000000)
    WHERE (substr(resource, 1, 1) = '/' OR instr(resource, '://') > 0);

-- What happened to each lease, of any kind: acquired, renewed, released, expired, or failed, which is a wait
-- that ended without the lease. How often it had been renewed by then is counted back from its row, so that
-- it is right also where older history was pruned.
CREATE VIEW lease_history AS
WITH happened AS (
    SELECT position, '' AS suffix, type, at_ns, tenant, lease_id, resource, holder, body
    FROM events
    WHERE type IN ('lease.issued', 'lease.released', 'lease.revoked', 'lease.expired', 'lease.left')
    UNION ALL
    SELECT events.position, '.' || renewal.id, events.type, events.at_ns, events.tenant, renewal.key,
        events.resource, events.holder, events.body
    FROM events, json_each(events.body, '$.renewals') AS renewal
    WHERE events.type = 'lease.renewed'
)
SELECT
    happened.position || happened.suffix AS id,
    happened.lease_id AS lease_id,
    happened.holder AS agent_id,
    coalesce(happened.resource, leases.resource) AS file_path,
    CASE happened.type
        WHEN 'lease.issued' THEN 'acquired'
        WHEN 'lease.renewed' THEN 'renewed'
        WHEN 'lease.expired' THEN 'expired'
        WHEN 'lease.left' THEN 'failed'
        ELSE 'released'
    END AS event_type,
    CASE happened.type
        WHEN 'lease.issued' THEN iif(happened.body ->> '$.claim_window_ns' > 0, 'pending', NULL)
        WHEN 'lease.left' THEN 'pending'
        ELSE 'active'
    END AS status_before,
    CASE happened.type
        WHEN 'lease.expired' THEN 'expired'
        WHEN 'lease.left' THEN 'failed'
        WHEN 'lease.released' THEN 'released'
        WHEN 'lease.revoked' THEN 'released'
        ELSE 'active'
    END AS status_after,
    max(0, coalesce(leases.renewal_count, 0) - (
        SELECT count(*) FROM events AS later
        WHERE later.resource = leases.resource AND later.type = 'lease.renewed'
            AND later.lease_id = leases.lease_id AND later.position > happened.position
    ) - (
        SELECT count(*) FROM events AS later
        WHERE later.tenant = leases.tenant AND later.holder = leases.holder
            AND later.type = 'lease.renewed' AND later.lease_id IS NULL
            AND later.position > happened.position
            AND json_type(later.body, '$.renewals."' || leases.lease_id || '"') IS NOT NULL
    )) AS renewal_count,
    happened.at_ns / 1000000000 AS event_at,
    happened.body ->> '$.reason' AS reason,
    happened.tenant AS tenant
FROM happened LEFT JOIN leases ON leases.lease_id = happened.lease_id;

-- Every setting that is in force: first as the catalog has it, then what single tenants and resources have.
CREATE VIEW lease_configs AS
WITH catalog (config_key, default_value, value_type, description, tenant) AS (VALUES
    ('default_ttl_seconds', '3600', 'int',
        'how long a file lease lasts if its request does not say', 'default'),
    ('max_renewals', '-1', 'int',
        'how often a file lease can be renewed if its request does not say; -1: no limit', 'default'),
    ('acquisition_timeout_ms', '30000', 'int',
        'how long a blocking request waits for a file if it does not say', 'default'),
    ('blocking_mode_enabled', 'true', 'bool',
        'whether a request may wait for a file; if not, it is answered at once', 'default'),
    ('auto_expire_enabled', 'true', 'bool',
        'whether expiries are recorded in the background; expired leases never block anybody', ''),
    ('cleanup_interval_seconds', '300', 'int',
        'how often every process that is connected records expiries in the background', ''),
    ('keep_history', 'true', 'bool',
        'whether history is kept for history_retention_days; if not, for an hour', ''),
    ('history_retention_days', '30', 'int',
        'how many days of history are kept; older entries are pruned once a day', '')
),
changed AS (
    SELECT key, tenant, body ->> '$.key' AS config_key, coalesce(body ->> '$.resource', '') AS resource_id,
        body -> '$.value' AS config_value, (body ->> '$.changed_at_ns') / 1000000000 AS changed_at
    FROM documents WHERE family = 'settings'
),
made AS (SELECT applied_at FROM migrations WHERE version = 2)
SELECT
    catalog.config_key AS id,
    catalog.config_key AS config_key,
    coalesce(changed.config_value, catalog.default_value) AS config_value,
    catalog.value_type AS value_type,
    catalog.description AS description,
    'global' AS scope,
    NULL AS resource_id,
    0 AS requires_restart,
    made.applied_at AS created_at,
    coalesce(changed.changed_at, made.applied_at) AS updated_at,
    catalog.tenant AS tenant
FROM catalog, made LEFT JOIN changed
    ON changed.key = catalog.tenant || char(1) || char(1) || catalog.config_key
UNION ALL
SELECT
    replace(changed.key, char(1), '/'), changed.config_key, changed.config_value, catalog.value_type,
    catalog.description, iif(changed.resource_id = '', 'global', 'resource'),
    nullif(changed.resource_id, ''), 0, changed.changed_at, changed.changed_at, changed.tenant
FROM changed JOIN catalog ON catalog.config_key = changed.config_key
WHERE changed.resource_id <> '' OR changed.tenant <> catalog.tenant;

CREATE TRIGGER lease_configs_are_changed_by_command INSTEAD OF UPDATE ON lease_configs BEGIN
    SELECT RAISE(ABORT, 'settings are not changed by SQL: use `leasehold config set KEY VALUE`');
END;
CREATE TRIGGER lease_configs_are_added_by_command INSTEAD OF INSERT ON lease_configs BEGIN
    SELECT RAISE(ABORT, 'settings are not changed by SQL: use `leasehold config set KEY VALUE`');
END;
CREATE TRIGGER lease_configs_are_removed_by_command INSTEAD OF DELETE ON lease_configs BEGIN
    SELECT RAISE(ABORT, 'settings are not changed by SQL: use `leasehold config reset KEY`');
END;
