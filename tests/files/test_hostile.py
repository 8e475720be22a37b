"""Every public method of the face, with each argument wrong in turn: an error of ours, if it is one."""

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import leasehold
from leasehold.files import (
    LeaseAcquisitionRequest,
    LeaseReleaseRequest,
    LeaseRenewalRequest,
    LeaseTransferRequest,
    LeaseUpgradeRequest,
)
from leasehold.files.blocking.face import Files
from tests.client.test_hostile import VALUES, methods_of, try_all, try_one, with_one_wrong

REQUESTS: dict[str, Any] = {
    "acquire_lease": LeaseAcquisitionRequest("./a", "ann", timeout_ms=1, blocking=False),
    "renew_lease": LeaseRenewalRequest("none", "ann"),
    "release_lease": LeaseReleaseRequest("none", "ann"),
    "upgrade_lease": LeaseUpgradeRequest("none", "ann"),
    "transfer_lease": LeaseTransferRequest("none", "ann", "bob"),
}


@pytest.mark.deep
@pytest.mark.parametrize("method", methods_of(Files))
def test_the_face_refuses_what_can_never_be_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.chdir(tmp_path)
    usual = {"agent_id": "ann", "file_path": "./a", "path": "./a", "lease_id": "none", "hearer": print}
    with leasehold.connect("memory:", holder="ann", timeout=5) as leases:
        if method != "lease":
            try_all(method, getattr(leases.files, method), lambda: dict(usual))
            return
        for value in VALUES:
            try_one(method, partial(leases.files.lease, value, wait=False), {})
        for number, given in enumerate(with_one_wrong(Files.lease, dict)):
            if "paths" not in given:
                # A path of its own: some of what is given here is granted, and some may wait for ever.
                try_one(method, partial(leases.files.lease, f"./{number}"), {"wait": False} | given)


@pytest.mark.parametrize("method", list(REQUESTS))
def test_a_request_is_refused_whatever_is_wrong_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.chdir(tmp_path)
    request = REQUESTS[method]
    with leasehold.connect("memory:", holder="ann", timeout=5) as leases:
        for field in request.__struct_fields__:
            for value in VALUES:
                given = {"request": msgspec.structs.replace(request, **{field: value})}
                try_one(method, getattr(leases.files, method), given)
