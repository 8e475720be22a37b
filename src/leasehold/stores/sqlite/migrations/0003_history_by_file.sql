-- The history of a file is found without going through the whole ledger.

-- What happened to each lease, of any kind: acquired, renewed, released, expired, or failed, which is a wait
-- that ended without the lease. How often it had been renewed by then is counted back from its row, so that
-- it is right also where older history was pruned.
DROP VIEW lease_history;
CREATE VIEW lease_history AS
WITH happened AS (
    SELECT position, '' AS suffix, type, at_ns, tenant, lease_id, resource, holder, body
    FROM events
    WHERE resource IS NOT NULL AND type IN (
        'lease.issued', 'lease.renewed', 'lease.released', 'lease.revoked', 'lease.expired', 'lease.left'
    )
    UNION ALL
    -- Which leases were renewed together only their entry says, so all of these are looked into.
    SELECT events.position, '.' || renewal.id, events.type, events.at_ns, events.tenant, renewal.key,
        (SELECT resource FROM leases WHERE leases.lease_id = renewal.key), events.holder, events.body
    FROM events INDEXED BY events_of_batches, json_each(events.body, '$.renewals') AS renewal
    WHERE events.type = 'lease.renewed' AND events.lease_id IS NULL
)
SELECT
    happened.position || happened.suffix AS id,
    happened.lease_id AS lease_id,
    happened.holder AS agent_id,
    happened.resource AS file_path,
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
