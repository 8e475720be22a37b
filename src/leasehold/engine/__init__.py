"""What carries the law: batches, sweeping, keeping, and the port that every store fits.

- ``port``       what a store has to be able to do, and nothing more
- ``batch``      many commands, one transaction
- ``recording``  how events become entries, and the events of the registrar itself
- ``retrying``   trying again what another writer has come in between of
- ``call``       one command on its way, and how its caller hears of the outcome
- ``committer``  who runs the batches: the caller itself when nobody is in the way, a thread otherwise
- ``desk``       what a client talks to         - ``registrar``  the authority itself, as a desk
- ``wire``       how all that crosses a desk is spelled
- ``questions``  what can be asked, as values   - ``replies``    the answers; ``status``: how leases stand
- ``admission``  whether a caller may ask that
- ``jobs``       what takes long, as values    - ``job_runner`` carries it out, and keeps the results a while
- ``chores``     what is done in the background without being asked
- ``kept``       a lease in the hands of its keeper, and how it can be lost
- ``keeper``     one background renewer for all the leases of a client
- ``trust``      how long a holder may believe in its lease without hearing from the registrar
- ``clock``      the clocks and ids of the machine we run on
- ``turn``       whose turn it is to write, among the threads of one process
- ``news``       how threads wait for something that others bring about
- ``bells``      waking those who wait           - ``waiters``    who waits, since when, and for how long
- ``signing``    keys, and what they sign        - ``sealing``    which of them seals the next commit
- ``keyholding`` rotating, retiring and vouching for keys
- ``audit``      is the history whole, and do the tables say what it says? ``differences``: where they do not
- ``walking``    a walk along the ledger that believes nothing; ``beginning``: where it begins
- ``pruning``    removing old history, such that what is left can still be proved
"""
