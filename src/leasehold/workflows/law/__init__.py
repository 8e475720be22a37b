"""The law of workflows: a family of records beside leases, as pure as the kernel.

``records`` is what is kept, ``events`` what happens, ``commands`` what can be asked and what is answered.
``limits`` says which commands can be right at all, ``ownership`` who may act for a workflow. The rules are
in ``claiming`` (claim, accept, hand off, and what the end of a lease means), ``stepping`` (everything that
raises the epoch) and ``following`` (subscriptions and the positions of guards). ``evolve`` is what events do
to records, ``retention`` what pruning may drop, ``invariants`` what must always hold, ``family`` all of it.
"""
