-- Scope, budget and descent of leases.

-- What `lease_id` was derived from. Both columns are NULL for a plain lease.
ALTER TABLE leases ADD COLUMN parent     TEXT;
ALTER TABLE leases ADD COLUMN delegation TEXT; -- JSON: scope, budget, ancestors, spent, delegated, orphaned

CREATE INDEX leases_by_parent ON leases (parent)
    WHERE status = 'active' AND parent IS NOT NULL;
-- Ended leases with more children than were ended in the same commit.
CREATE INDEX leases_orphaned ON leases (lease_id)
    WHERE delegation IS NOT NULL AND delegation ->> '$.orphaned';

-- A spending has to be remembered, too, so that its retry does not spend again.
DROP INDEX events_by_request;
CREATE INDEX events_by_request ON events (request)
    WHERE request IS NOT NULL AND type IN ('lease.issued', 'lease.renewed', 'lease.spent');
