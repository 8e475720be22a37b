"""Whoever wants to act has to prove the lease: certificate first, then the fence.

Promised: nobody gets in without a certificate that a trusted key signed for this very resource and tenant,
nor with a token below one that got in before. Not promised: that no newer holder comes in while an act goes
on. An act that writes does it in one step with the comparison (`leasehold.enforcing.sql`).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from leasehold.certificates.certificate import Certificate
from leasehold.certificates.errors import CertificateMissing
from leasehold.certificates.keys import Keys, TrustedKeys
from leasehold.certificates.verifying import DEFAULT_LEEWAY, verify_certificate
from leasehold.enforcing.fence import Admits, Fence

_Result = TypeVar("_Result")

ARGUMENT = "certificate"
"""The keyword argument in which a protected function is given the certificate."""


class Enforcer:
    """Trusted keys and a fence: what a resource needs to tell its holder from everybody else."""

    def __init__(
        self,
        *,
        keys: Keys,
        tenant: str = "default",
        issuer: str | None = None,
        fence: Admits | None = None,
        leeway: float = DEFAULT_LEEWAY,
    ) -> None:
        self.fence: Admits = Fence() if fence is None else fence
        self._keys = TrustedKeys.of(keys)
        self._tenant = tenant
        self._issuer = issuer
        self._leeway = leeway

    def trust(self, keys: Keys) -> None:
        """Trust these keys from now on, and no others: after the registrar's keys have changed."""
        self._keys = TrustedKeys.of(keys)

    def admit(self, text: str | None, resource: str) -> Certificate:
        """Let a certificate's holder in, and keep older tokens out from now on; raise NotProven if not."""
        if not text:
            raise CertificateMissing(
                f"to use {resource}, send the certificate of a lease on it; `lease.certificate()` returns it",
                resource=resource,
            )
        certificate = verify_certificate(
            text,
            keys=self._keys,
            resource=resource,
            tenant=self._tenant,
            issuer=self._issuer,
            leeway=self._leeway,
        )
        self.fence.admit(resource, certificate.token, certificate.mode)
        return certificate

    def protects(
        self, resource: str | Callable[..., str]
    ) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
        """Return a decorator: the function runs only for who passes the certificate of a lease on `resource`.

        The certificate comes as the keyword argument `certificate`, as text; the function gets it as a
        `Certificate`. If the resource depends on the call, pass a function that returns it from the call's
        other arguments.
        """

        def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
            return _protected(self, resource, function)

        return decorate


def _protected(
    enforcer: Enforcer, resource: str | Callable[..., str], function: Callable[..., _Result]
) -> Callable[..., _Result]:
    def admitted(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        text = named.pop(ARGUMENT, None)
        name = resource if isinstance(resource, str) else resource(*given, **named)
        return named | {ARGUMENT: enforcer.admit(text, name)}

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def waiting(*given: Any, **named: Any) -> Any:
            return await function(*given, **admitted(given, named))

        return cast("Callable[..., _Result]", waiting)

    @functools.wraps(function)
    def acting(*given: Any, **named: Any) -> Any:
        return function(*given, **admitted(given, named))

    return acting
