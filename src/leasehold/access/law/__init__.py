"""The law of access keys: as pure as the kernel.

- ``model``      what a key is, and until when it opens anything
- ``commands``   what can be asked, and whether it can be right at all
- ``events``     what happens to keys
- ``rules``      what follows from a command, and what an event does to a key
- ``admission``  what a key lets its bearer ask
- ``family``     all of it together
"""
