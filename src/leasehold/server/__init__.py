"""The server: a registrar for programs on other machines.

- ``serving``    start, serve, stop; ``configuration``: what it can be told
- ``front``      what every request passes: limits, ids, logs (``logs``)
- ``app``        one ASGI application: the desk route in front, everything else by a router
- ``desk_route`` what remote clients speak to; ``clerk`` has it carried out, ``doorbells`` rings,
  ``carried`` tells the log what it was
- ``leases``, ``ledger``, ``events``, ``health``  routes, with ``bodies`` for what they take and give
- ``terms``      what holders elsewhere do with leases, and how their claims wait
- ``service``    what all routes share; ``sessions``: the desks they speak to, one for each caller
- ``identity``   who asks, by the access key that was shown, and how often it may
- ``answers``    how much of large answers each caller has in memory
- ``recent``     the newest entries, for all who watch; ``follower``: waits for the ledger to grow
- ``meters``     what is counted, at each desk (``metered_desk``)
- ``problems``   what an error looks like over HTTP
- ``routing``    what the route modules of all faces have in common
"""
