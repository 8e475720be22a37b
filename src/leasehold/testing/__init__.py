"""Tools for testing with leases, for users of leasehold and for leasehold itself.

- ``clock``        a clock that stands still until it is told otherwise
- ``faults``       a disk that fails when it is told to
- ``conformance``  what every store has to prove, as a class of tests to inherit from
- ``simulator``    the real law and engine in a world where everything goes wrong, from a seed
- ``simulate``     the simulator's command line

Nothing here is imported by the rest of the package.
"""
