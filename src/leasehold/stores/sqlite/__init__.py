"""A store in a folder with a SQLite database, for many processes of one machine and no daemon.

- ``store``        transactions, snapshots, waiting, fork safety
- ``reading``      the questions a snapshot can be asked
- ``listing``      the statements that list leases and entries
- ``writing``      how a batch becomes rows
- ``shelves``      how the records of each family are kept and found
- ``rows``         how entries, and the registrar's own records, are spelled as rows
- ``soft``         what is kept beside the ledger
- ``bells``        waking waiters in other processes
- ``write_queue``  who writes next
- ``server_lock``  that a store has one server at a time
- ``connection``   opening the database; which SQLite is good enough
- ``place``        being inside a store's folder: who may, and what has to be as it was
- ``belongings``   what belongs to that folder, and what is wrong with what is found there
- ``identity``     the file that says which store this is, and how far it had come
- ``file_status``  when a file was born, and whether something is mounted there
- ``files``        names, modes, network file systems
- ``key_files``    the private keys
- ``failures``     what SQLite's errors mean to us
- ``opened``       one process's hold on a store; why it is given up in a fork
- ``forks``        telling all stores of a process of a fork
- ``backup``       copies that can be restored without repeating a token
- ``inspecting``   looking into a backup, without changing it
- ``replacing``    what a restore would take from a store
- ``server_lock``  the lock of the one server that a store may have
- ``shrinking``    giving room back that nothing needs any more
- ``copying``      how pages are copied, and a copy is checked
- ``defects``      damage to the file, and a schema that somebody has changed
- ``migrations``   the schema, in numbered steps
"""

from leasehold.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
