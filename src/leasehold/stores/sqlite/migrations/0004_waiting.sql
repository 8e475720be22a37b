-- Leases that are waited for: tickets, places in the queue, and lock-delay.

ALTER TABLE leases ADD COLUMN lock_delay_ns INTEGER NOT NULL DEFAULT 0;
-- The whole ticket, as JSON, while the lease is pending or not confirmed yet, or is to be upgraded.
ALTER TABLE leases ADD COLUMN ticket TEXT;
-- The order in which those are served who wait; NULL for everybody else. '~': waits to be alone, before the queue.
ALTER TABLE leases ADD COLUMN place TEXT;

-- One queue per resource and mode, in order. All that have a place wait for something.
CREATE INDEX leases_waiting ON leases (tenant, resource, mode, place)
    WHERE place IS NOT NULL;
CREATE INDEX leases_waiting_of_holder ON leases (tenant, holder)
    WHERE place IS NOT NULL;
CREATE INDEX leases_waiting_by_expiry ON leases (tick_era, expires_tick)
    WHERE status = 'pending';

-- Requests that joined a queue, or changed a mode, are remembered like grants.
DROP INDEX events_by_request;
CREATE INDEX events_by_request ON events (request)
    WHERE request IS NOT NULL AND type IN ('lease.issued', 'lease.renewed', 'lease.spent', 'lease.queued', 'lease.mode_changed');
