"""What every ledger has, whatever is kept in it.

What there is:

- ``tick``        authority time, and when two readings may be compared
- ``authority``   epochs, eras and tokens: why a token never repeats
- ``events``      what every event says, and the events of the registrar itself
- ``chain``       how one ledger entry vouches for all before it
- ``keys``        which keys may seal the ledger
- ``state``       a history folded into the state it describes
- ``checkpoint``  the state that stands for pruned history
- ``key``         how the key of a record is spelled
- ``limits``      a limit on everything        - ``refusals``  what is answered when the answer is no

How it takes more kinds of records, and how they are decided:

- ``family``      one kind of record, and everything that is to be known about it
- ``commands``    what all commands have in common, and who asks
- ``decide``      one command, decided         - ``draft``     what is being decided
- ``view``        the records a decision looks at; ``table``: those of one family that is kept as documents
- ``records``     names of records, and the records found for them
- ``journal``     what a batch changes, and how it is undone
"""
