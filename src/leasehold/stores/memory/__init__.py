"""A store in memory, for one process.

Everything the port promises holds between the threads of a process, except durability: the store is gone
with the process.

- ``store``    transactions, snapshots, waiting
- ``reading``  the questions a snapshot can be asked
- ``writing``  a transaction
- ``tables``   what is kept, and how a batch is taken in
- ``ledger``   the entries, and what stands for those that are gone
- ``queues``   who waits
"""

from leasehold.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
