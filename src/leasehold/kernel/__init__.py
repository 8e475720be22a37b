"""The law, as pure functions.

Nothing in this package reads a clock, draws a random number, touches a file or a socket, logs, or looks
at the environment: time, ids and records come in as arguments. The same arguments always give the same
answer, so a decision can be taken again whenever more records are needed, and a history can be replayed.

- ``ledger``  what every ledger has, whatever is kept in it
- ``lease``   the law of leases
"""
