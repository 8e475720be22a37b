"""Real processes around one store, in a mount namespace of their own, and one who directs them.

- ``stage``      for tests: a stage, and the actors on it
- ``backstage``  the process that makes stages, and each stage's own: it forks actors, mounts, and kills
- ``actor``      what an actor does when it is told to
"""
