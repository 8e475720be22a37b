"""The law of leases, as pure functions.

Nothing in this package reads a clock, draws a random number, touches a file or a socket, logs, or looks
at the environment: time, ids and records come in as arguments. The same arguments always give the same
answer, so a decision can be taken again whenever more records are needed, and a history can be replayed.

Where to look:

- ``lease``       what a lease is, and the states it can be in
- ``tick``        authority time, and when two readings may be compared
- ``authority``   epochs, eras and tokens: why a token never repeats
- ``commands``    what can be asked      - ``refusals``  what is answered when the answer is no
- ``events``      what can happen        - ``answers``   what is answered when the answer is yes
- ``wellformed``  what is refused unread: empty, too long, too much (the numbers are in ``limits``)
- ``delegation``  scope, budget and descent of a lease (the value types are in ``scope`` and ``budget``)
- ``decide``      the law: command, view and time in; events and an answer out
- ``decision``    what all rules of the law share
- ``granting``    claims where nobody waits        - ``renewing``  more time
- ``ending``      release, revoke, sweep           - ``access``    what a lease allows
- ``deriving``    a child of a lease               - ``spending``  using up a budget
- ``succession``  what an adopted lease inherits  - ``repeating``  which claim is a retry of which
- ``aging``       what time alone does to a lease
- ``lineage``     what the end of an ancestor does to a lease    - ``settling``  what an end brings about
- ``evolve``      what one event does to one lease; ``evolve_waiting``: where it is waited for;
  ``transition``: what both share     - ``happening``  what all events about one lease say
- ``view``        the records a decision looks at; ``records`` names them, ``queue_records`` knows who waits,
  ``foresight`` what a batch will need
- ``ticket``      a place in the queue, and its order; ``waiting_line``: those who wait, in that order
- ``claiming``    waiting, and claims on several resources; ``asking``: the same claim, asking how it stands
- ``queueing``    who is entitled to what became free
- ``placing``     what those are told who wait
- ``deadlock``    who would wait for ever          - ``paths``    which resources cover which
- ``changing``    upgrade, downgrade, transfer     - ``delaying``  what stays closed after a holder was lost
- ``draft``       a decision that goes step by step; ``touched``: what it has changed around a resource
- ``invariants``  everything that must be true of every reachable state; of those who wait
  (``queue_invariants``), and of parents and children (``lines``)
- ``chain``       how one ledger entry vouches for all before it
- ``keys``        which keys may seal the ledger
- ``replay``      a history folded into the state it describes
- ``checkpoint``  the state that stands for pruned history   - ``forgetting``  which leases go with it
"""
