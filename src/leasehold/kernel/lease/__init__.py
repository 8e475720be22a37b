"""The law of leases.

What there is:

- ``model``       what a lease is, and the states it can be in
- ``delegation``  scope, budget and descent of a lease (the value types are in ``scope`` and ``budget``)
- ``ticket``      a place in the queue, and its order
- ``paths``       which resources cover which
- ``commands``    what can be asked            - ``answers``  what is answered when the answer is yes
- ``events``      what can happen              - ``evolve``   what one event does to one lease
- ``invariants``  everything that must be true of every reachable state

How it is decided:

- ``check``       what is refused unread: empty, too long, too much
- ``family``      leases as a family of records: the rules, put into a draft
- ``rules``       one module for each verb     - ``decision``  what all rules share
- ``quotas``      how many leases one holder, and one tenant, may have
- ``age``         what time alone does to a lease
- ``queue``       who is in whose way, and who is entitled to what became free
- ``place``       what those are told who wait
- ``deadlock``    who would wait for ever
- ``lock_delay``  what stays closed after a holder was lost
- ``lineage``     what the end of an ancestor does to a lease
- ``descendants`` what the end of a lease does to those above and below
- ``succession``  what an adopted lease inherits
- ``access``      what a lease allows
- ``forgotten``   which ended leases leave with pruned history

What it is decided on:

- ``records``     names of records, and the records found for them
- ``view``        what a view knows of leases; ``queue_view``: who waits; ``needs``: what a batch will need;
  ``waiting_line``: the order of one queue
- ``plan``        a decision that goes step by step; ``touched``: what it has changed around a resource
"""
