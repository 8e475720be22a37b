"""The page about file leases: every public name of `leasehold.files`, and what `leases.files` returns."""

from leasehold import files
from leasehold.files.blocking.face import Files
from leasehold.files.blocking.guarded import GuardedFile
from leasehold.files.blocking.lease import HeldFiles
from tools.reference.api import class_entry, function_entry
from tools.reference.source import function_member
from tools.reference.writing import page

_SECTIONS = {
    "Names": ("FileName",),
    "What is asked": (
        "LeaseAcquisitionRequest",
        "LeaseRenewalRequest",
        "LeaseReleaseRequest",
        "LeaseUpgradeRequest",
        "LeaseTransferRequest",
    ),
    "What is answered": (
        "LeaseAcquisitionResponse",
        "LeaseRenewalResponse",
        "LeaseReleaseResponse",
        "FileLease",
        "LeaseStatus",
        "LeaseEvent",
    ),
}
_PLUMBING = frozenset({"parts", "validate"})
"""Public between the modules of the face, and no part of its interface."""

_INTRODUCTION = """\
`leases.files` is a [Files](#files); that of an asynchronous client has the same methods, which are awaited,
and its blocks are entered with `async with`. A path (`AnyPath`) is text or an `os.PathLike[str]`; one that is
not absolute counts from the working directory. What is asked and answered can be imported from
`leasehold.files`. How it is used: [lease files](../how-to/lease-files.md). What is raised is on the page of
[errors](errors.md), and what the settings say can be [changed](../how-to/change-settings.md)."""


def files_page() -> str:
    """Return the page; raise if a public name has no place on it."""
    placed = {"name_of", *(one for section in _SECTIONS.values() for one in section)}
    if placed != set(files.__all__):
        difference = placed ^ set(files.__all__)
        raise SystemExit(f"give these a section in tools/reference/files.py: {sorted(difference)}")
    parts = [_INTRODUCTION, "## Claiming files"]
    parts += [class_entry(kind.__name__, kind, _PLUMBING) for kind in (Files, HeldFiles, GuardedFile)]
    for title, names in _SECTIONS.items():
        parts.append(f"## {title}")
        parts += [class_entry(one, getattr(files, one)) for one in names]
        if title == "Names":
            parts.append(function_entry(function_member(files.name_of)))
    return page("File leases", *parts)
