"""The client: what a program holds in its hands.

- ``connect``       opening a store
- ``async_client``  acquire, release, revoke, sweep; stands on all that follow
- ``async_reading`` looking, and following what happens
- ``async_holding`` the leases a client keeps, and how it speaks to the registrar about them
- ``async_renewing``    more time                    - ``async_claiming``  waiting, several at once
- ``async_changing``    upgrade, downgrade, transfer - ``async_delegating``  scopes and budgets
- ``async_upkeep``    verify, rebuild, prune, keys, backup: the jobs of an operator
- ``async_lease``   a lease in the hands of its holder; ``async_leases``: several of one claim; ``held``: any
- ``async_block``   the body of a `with` statement under leases; ``acquisition``: what can be entered as one
- ``sync_client``   the same, blocking; generated from the asynchronous modules, never edited
- ``calls``         the one place where waiting has a colour; ``async_calls``: the other colour
- ``lookout``       one thread that watches the ledger for all tasks
- ``listening``     how a waiter sleeps until it is woken; ``waits``: what it is told when that was in vain
- ``loss``          how a holder hears that its lease is gone; ``announcer``: who asked to be called
- ``holders``       who is asking, when the caller does not say
- ``inputs``        what callers write, checked
- ``lifetimes``     what happens to clients when the program ends, or forks
"""
