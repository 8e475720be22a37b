"""Workflow leases for threads: generated from ``aio``, apart from ``colour``."""
