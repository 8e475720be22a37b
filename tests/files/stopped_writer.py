"""An agent that opens a file under a lease of a second, writes, waits to be told, and closes the file."""

import sys

import leasehold


def main(store: str, path: str) -> None:
    """Say how far it is, and how it ended."""
    with leasehold.connect(store) as leases:
        lease = leases.files.lease(path, agent="stopped", ttl=1)
        out = lease.open(path, "w")
        out.write("stale")
        print("written", flush=True)
        sys.stdin.readline()
        try:
            out.close()
        except leasehold.LeaseLost as error:
            print("lost", error.code, flush=True)
        else:
            print("overwritten", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
