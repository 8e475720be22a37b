"""The server: a registrar for programs on other machines.

- ``app``        one ASGI application: the desk route in front, everything else by a router
- ``desk_route`` what remote clients speak to; ``clerk`` has it carried out, ``doorbells`` rings, ``follower`` waits
- ``problems``   what an error looks like over HTTP
- ``identity``   who asks, by the access key that was shown, and how often it may
- ``sessions``   the desks that routes speak to, one for each caller
- ``routing``    what the route modules of all faces have in common
"""
