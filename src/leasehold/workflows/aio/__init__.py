"""Workflow leases for asyncio; the blocking half is generated from it.

``workflows`` is the face that hangs on a client, ``orchestrator`` who owns a workflow, ``guard`` what nodes
put in front of their work, ``bus`` how actions get there, ``local_bus`` a bus in the process, for tests,
``manager`` what operators do. ``colour`` is what differs between the halves.
"""
