"""Where records and the ledger live: one small port, several houses behind it.

- ``memory``  in this process only, gone with it: for tests, and for programs that need no more
- ``sqlite``  one file, many processes, no daemon: the default
- ``locate``  which store a program means when it does not say
"""
