"""A store in memory, for one process.

Everything the port promises holds between the threads of a process, except durability: the store is gone
with the process.

- ``store``           transactions, snapshots, waiting
- ``reading``         the questions a snapshot can be asked
- ``writing``         a transaction
- ``tables``          what is kept, and how a batch is taken in
- ``ledger``          the entries, and what stands for those that are gone
- ``lease_shelf``     leases
- ``queues``          who waits
- ``document_shelf``  the records of all other families
- ``soft``            what is kept beside the ledger
"""

from leasehold.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
