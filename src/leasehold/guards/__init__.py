"""Guards: file leases that are enforced. Who is about to change a path that somebody else has is refused.

- ``verdict``       what a guard answers, and the exit code that says so
- ``rivals``        whose lease is in whose way
- ``records``       where to look who has leased what: a store at hand, or a server
- ``asking``        what is asked of a store, and recorded there
- ``claiming``      how an agent comes by the file that it is about to change
- ``law``           what history keeps of somebody who went past a guard
- ``repository``    what git knows: staged and pushed paths
- ``tool_use``      what Claude Code tells a hook; ``shell``: which files a shell command writes,
  and ``shell_words``: how a shell reads it
- ``home``          which files belong to the repository that a hook is installed in
- ``hook``          the hook of Claude Code, as a process; ``deadline``: its end
- ``git_hooks``, ``claude_code``, ``shared_store``   installing, and uninstalling
- ``program``       how hooks call leasehold
- ``proof``         does an installed hook really block?
- ``commands``      `leasehold guard`
"""
