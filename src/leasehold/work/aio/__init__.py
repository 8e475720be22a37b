"""Work leases for asyncio; `blocking/` is generated from this."""
