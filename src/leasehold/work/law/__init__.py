"""The law of work leases: one offset at a time in each domain, first in, first out. Pure, as the kernel is.

A domain is a stream of numbered messages, such as a partition or an account. At most one of its offsets is in
flight; others queue up behind it in the backlog, in the order in which they came. An offset ends as processed
or as failed, once and for ever.

Promised: at most one offset of a domain is in flight; what is in flight, in the backlog and terminal never
overlap; the backlog is drained from its head only, by acquiring that very offset; a terminal offset is never
queued nor acquired again; only the token of the offset in flight ends it; a domain's record, once made, is
never made again. No command looks at more records because the backlog is longer, or because there are more
ranges of terminal offsets.

Not promised: when something is tried again. Backoff is for whoever calls, who is told `acquired_at_millis`
and `retry_count`.

- ``model``       the records, and the keys they are kept under
- ``commands``    what can be asked; ``check``: whether it can be right at all
- ``answers``     what is answered
- ``events``      what can happen; ``evolve``: what that does to the records
- ``ranges``      which offsets are terminal
- ``rules``       what follows from a command; ``finish``: how an offset ends
- ``age``         what time does to an offset in flight
- ``needs``       what a batch reads first
- ``invariants``  what must always hold
- ``family``      all of it together
"""
