"""The client of tasks, from which that of threads is generated.

- ``client``        what a program can do: each method puts what its caller means into a command
- ``reader``        what it can ask; ``upkeep``: what an operator has done to the whole ledger
- ``session``       what all parts, and faces, speak to the registrar through
- ``claims``        how leases begin, and how they end
- ``waiting_room``  where claims wait for what somebody else holds
- ``terms``         what is done with a lease between: renew, upgrade, transfer, spend
- ``lease``         a lease in the hands of its holder; ``leases``: several of one claim
- ``block``         the body of a `with` statement under leases

Written for both colours, because this is where they differ:

- ``calls``         waiting for an outcome
- ``listening``     how a waiter sleeps until it is woken
- ``loss``          how a holder hears that its lease is gone

For tasks only:

- ``connect``       opening a store
- ``acquisition``   what can be awaited, or entered as a context manager
- ``lookout``       one thread that watches the ledger for all tasks
"""
