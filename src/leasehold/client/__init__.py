"""The client: what a program holds in its hands.

- ``connect``       opening a store
- ``async_client``  acquire, renew, release, revoke, sweep; ``async_reading`` and ``async_lease`` belong to it
- ``sync_client``   the same, blocking; generated from the asynchronous modules, never edited
- ``calls``         the one place where waiting has a colour
- ``loss``          how a holder hears that its lease is gone
- ``holders``       who is asking, when the caller does not say
"""
