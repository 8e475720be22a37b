"""File leases for threads: generated from `aio`."""
