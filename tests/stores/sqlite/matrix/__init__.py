"""What can be done to the files of a store, in every situation, and what comes of it.

- ``deeds``    what operators and containers do to files
- ``play``     one deed in one situation: who tries what, before and after it
- ``judge``    what must never come of it
- ``verdict``  what came of it, in words
- ``tale``     many deeds in one tale, told by a seed
- ``page``     the table in docs/concepts/stores.md, which says all that

``python -m tests.stores.sqlite.matrix`` plays everything and writes the table.
"""
