"""What the names that occur everywhere mean, where the source lets them speak for themselves."""

from tools.reference.source import Field

_WORDS = {
    "actor": "Who did it: a holder, an operator, or `registrar` for what nobody asked for.",
    "adopted_from": "The lease this one replaced, when its holder adopted it.",
    "amounts": "How many episodes, tool calls, tokens and milliseconds.",
    "body": "The event as it was written.",
    "boot_id": "The boot of the machine whose clock is read.",
    "bound_to_boot": "Whether the lease ends when the machine reboots.",
    "child_id": "The lease that was derived from this one, or further below.",
    "config_version": "The version of a configuration, as the claim gave it.",
    "cycle": "Who would wait for ever: a holder, what it waits for, who is in its way, …, the first.",
    "detail": "What is wrong with the value.",
    "duration_ms": "How many milliseconds.",
    "episodes": "How many episodes.",
    "epoch": "The store's epoch: the upper part of every token from here on.",
    "event": "What happened: see [events](events.md).",
    "expires_tick": "The value of the tick at which it expires now.",
    "field": "Which argument is wrong.",
    "granted": "What the child had been granted; 0 where it had no limit.",
    "group": "All leases of a claim on several resources; empty for a claim on one.",
    "hash": "Vouches for this entry and all before it.",
    "holder": "Who owns it.",
    "identity": "The device, inode and time of birth of the store's file.",
    "last_renewed_at_ns": "Wall time of the last renewal.",
    "lease": "The lease.",
    "lease_id": "The lease's id.",
    "kept_ns": "How long the place is kept for a waiter that does not ask again.",
    "limit": "The limit that was passed.",
    "lock_delay_ns": "How long the resource stays closed after an expiry or a revocation.",
    "max_renewals": "How often it may be renewed; -1 means without limit.",
    "metadata": "What the claim gave to be kept with the lease.",
    "mode": "Exclusive or shared.",
    "namespaces": "Paths; each covers everything below it.",
    "orphaned": "Whether children were left that did not fit into this commit; sweeping ends them.",
    "path": "The file of the store.",
    "position": "Its place in the ledger, counted from 1.",
    "priority": "From 1 to 10, the most urgent.",
    "process_id": "The process that is in the way.",
    "reason": "Why.",
    "release_reason": "Why the holder gave it back.",
    "renewal_count": "How often it was renewed.",
    "request_id": "The id to ask again with.",
    "resource": "What is owned.",
    "schema": "The version of the event's shape.",
    "signature": "Empty in this release.",
    "spent": "What was used up under the child.",
    "state": "Where the lease is in its life.",
    "statuses": "The leases, in the order of their grants.",
    "tenant": "Whose leases: a name that keeps groups of them apart.",
    "ticket": "The place in the queue; the number only ever rises.",
    "tick": "When, by the authority's clock.",
    "token": "The fencing token.",
    "tokens": "How many tokens.",
    "tool_calls": "How many calls of tools.",
    "tools": "Which tools may be used.",
    "ttl_ns": "How long it was granted, or last renewed, for.",
    "unlimited": "Whether everything is allowed.",
    "waited": "Seconds that the caller has waited in vain.",
    "work_ids": "Which work may be done.",
    "wake": "Where the waiter is to be woken.",
    "zone_version": "The version of a zone's configuration, as the claim gave it.",
}


def meaning_of(field: Field) -> str:
    """Return what a field means; raise if nobody says."""
    text = field.text or _WORDS.get(field.name)
    if text is None:
        raise SystemExit(
            f"describe the field {field.name} where it is defined, or in tools/reference/words.py"
        )
    return text
