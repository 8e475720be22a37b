"""What every ledger has, whatever is kept in it.

- ``tick``        authority time, and when two readings may be compared
- ``authority``   epochs, eras and tokens: why a token never repeats
- ``chain``       how one ledger entry vouches for all before it
- ``keys``        which keys may seal the ledger
- ``state``       a history folded into the state it describes
- ``checkpoint``  the state that stands for pruned history
- ``limits``      a limit on everything        - ``refusals``  what is answered when the answer is no
"""
