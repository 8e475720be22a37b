"""The rules, one module for each verb.

- ``acquire``      claims where nobody waits     - ``contend``  claims where it is crowded
- ``repeat``       a claim that is sent again: whether it is the same, and how it stands
- ``renew``        more time                     - ``release``  giving back, and how any lease is ended
- ``revoke``       forcibly ending               - ``sweep``    recording what time has ended
- ``change_mode``  shared to exclusive, and back - ``transfer`` from one holder to another
- ``derive``       a child of a lease            - ``spend``    using up a budget
"""
