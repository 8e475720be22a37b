"""The client: what a program holds in its hands.

- ``aio``         the client, in parts, as coroutines: its own page says which there are
- ``blocking``    the same for threads; generated from ``aio``, apart from where waiting has a colour
- ``connect``     opening a store

What has no colour, because it never waits, is here:

- ``session``     what all parts of a client share
- ``holdings``    the leases a client keeps, and who is in the middle of getting or returning one
- ``users``       who uses the leases that a client keeps, where claims share one
- ``held``        a lease in the hands of its holder
- ``holders``     who is asking, when the caller does not say
- ``inputs``      what callers write, checked
- ``waits``       what is said about waiting, and what a waiter is told when that was in vain
- ``announcer``   telling holders who asked to be called that a lease is gone
- ``lifetimes``   what happens to clients when the program ends, or forks
"""
