"""`leasehold mcp`: file leases as tools of a coding agent, over the Model Context Protocol.

- ``commands``     the command
- ``stdio``        a server on standard input and output, from its first line to a clean end
- ``server``       the protocol: which tools there are, and calls of them
- ``definitions``  what a client is told about each tool
- ``tools``        what each tool does
- ``arguments``    what a tool is asked for      - ``answers``   what it answers
- ``refusals``     what who is refused is told   - ``paths``     how files are named here
- ``connection``   the store, opened when it is first needed

Not to be mistaken for the package `mcp`, the protocol's own SDK, which only ``stdio`` and ``server`` import.
It comes with the extra `mcp`.
"""
