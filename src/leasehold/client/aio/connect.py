"""Connecting to a store for use with asyncio."""

import asyncio
import os

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.client import AsyncClient
from leasehold.client.connect import Opening, open_desk, quotas_of, tenant_for
from leasehold.client.inputs import Duration


def connect_async(
    url: str | os.PathLike[str] | None = None,
    *,
    tenant: str | None = None,
    holder: str | None = None,
    durability: str = "full",
    group: bool = False,
    create: bool = True,
    as_is: bool = False,
    timeout: Duration = 30.0,
    leases_per_holder: int | None = None,
    leases_per_tenant: int | None = None,
    api_key: str | None = None,
) -> AsyncAcquisition[AsyncClient]:
    """Connect to a store for use with asyncio: `async with connect_async() as leases:`, or await it.

    The arguments are those of `connect`; by default each task is a holder of its own.
    """
    whose = tenant_for(url, tenant, holder)
    opening = Opening(
        durability=durability,
        group=group,
        create=create,
        as_is=as_is,
        timeout=timeout,
        quotas=quotas_of(leases_per_holder, leases_per_tenant),
    )

    async def open_client() -> AsyncClient:
        desk = await asyncio.to_thread(open_desk, url, opening, api_key)
        return AsyncClient(desk, tenant=whose, holder=holder)

    return AsyncAcquisition(open_client())
