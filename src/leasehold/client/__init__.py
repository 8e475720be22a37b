"""The client: what a program holds in its hands.

- ``connect``       opening a store
- ``async_client``  acquire, renew, release, revoke, sweep; stands on ``async_holding`` and ``async_reading``
- ``async_holding`` the leases a client keeps, and how it speaks to the registrar about them
- ``async_lease``   a lease in the hands of its holder
- ``sync_client``   the same, blocking; generated from the asynchronous modules, never edited
- ``calls``         the one place where waiting has a colour
- ``loss``          how a holder hears that its lease is gone
- ``holders``       who is asking, when the caller does not say
- ``inputs``        what callers write, checked
- ``lifetimes``     what happens to clients when the program ends, or forks
"""
