"""What callers of the face write, checked and brought into its terms."""

from leasehold.client.inputs import whole_number
from leasehold.errors import InvalidInput
from leasehold.files.names import AnyPath, FileName, name_of


def check_request(request: object, kind: type) -> None:
    """Refuse what is no request of the kind that a method takes."""
    if not isinstance(request, kind):
        raise InvalidInput(f"request must be a {kind.__name__}, not {request!r:.80}", field="request")


def named(path: AnyPath | FileName) -> FileName:
    """Return the name of a path, or the name that was given."""
    return path if isinstance(path, FileName) else name_of(path)


def patience_of(timeout_ms: int | None, blocking: object) -> float | bool | None:
    """Return for how many seconds a request may wait; None: as it is preferred, False: not at all."""
    if not isinstance(blocking, bool):
        raise InvalidInput(f"blocking must be true or false, not {blocking!r:.80}", field="blocking")
    if not blocking:
        return False
    return None if timeout_ms is None else whole_number("timeout_ms", timeout_ms, minimum=0) / 1_000
