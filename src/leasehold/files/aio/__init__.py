"""File leases for tasks."""
