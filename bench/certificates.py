"""Making and checking certificates."""

from pathlib import Path

import leasehold
from bench.measuring import Report, quickest
from leasehold.certificates.certificate import body_of
from leasehold.certificates.issuing import issuer_of
from leasehold.certificates.signing import sign
from leasehold.engine.questions import ListKeys
from leasehold.engine.registrar import Registrar

RESOURCE = "reports/2026/42"


def run(report: Report, folder: Path) -> None:
    """Measure a certificate from the store, the signing alone, and the check."""
    with leasehold.connect(str(folder / "certificates"), durability="fast") as leases:
        lease = leases.acquire(RESOURCE, ttl=600)
        keys = leases.certificate_keys()
        text = lease.certificate()
        registrar = leases._session.desk
        assert isinstance(registrar, Registrar)
        key, issuer = registrar.signing_key(), issuer_of(registrar.ask(ListKeys()))
        left_ns = round(lease.remaining * 1e9)

        def sign_only() -> str:
            body = body_of(
                lease.lease, issuer=issuer, position=1, wall_ns=lease.lease.issued_at_ns, left_ns=left_ns
            )
            return sign(body, key)

        measured = quickest(
            {
                "issue": lease.certificate,
                "sign": sign_only,
                "check": lambda: leasehold.verify_certificate(text, keys=keys, resource=RESOURCE),
            },
            slices=50,
            repeats=80,
        )
    microseconds = {name: 1e6 * seconds for name, seconds in measured.items()}
    report.show(f"a certificate of {len(text)} characters; signing alone takes {microseconds['sign']:.0f} µs")
    report.ratio("issue a certificate of a lease, µs", microseconds["issue"], at_most=100)
    report.ratio("check a certificate, µs", microseconds["check"], at_most=300)
