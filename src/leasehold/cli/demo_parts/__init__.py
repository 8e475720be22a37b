"""What the demo is made of.

- ``narration``  what is said, and the claims that have to hold
- ``worker``     a process that wants the resource
- ``actors``     starting workers, and talking with them
- ``shelf``      a resource that checks tokens
- ``workflow``   the chapter about workflows
- ``agents``     the chapter about coding agents
"""
