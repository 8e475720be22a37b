"""What carries the law: batches, sweeping, keeping, and the port that every store fits.

- ``port``       what a store has to be able to do, and nothing more
- ``batch``      many commands, one transaction
- ``recording``  how events become entries, and the events of the registrar itself
- ``committer``  who runs the batches: the caller itself when nobody is in the way, a thread otherwise
- ``registrar``  the authority that a client talks to: commands in, answers out
- ``keeper``     one background renewer for all the leases of a client
- ``trust``      how long a holder may believe in its lease without hearing from the registrar
- ``clock``      the clocks and ids of the machine we run on
- ``signing``    the keys that the registrar signs with
- ``audit``      is the history whole, and do the tables say what it says?
"""
