"""How hooks call leasehold: by an absolute path, so that it does not matter what PATH they have."""

import os
import shlex
import sys


def quoted_program() -> str:
    """Return the words that run this very leasehold, for a shell."""
    script = os.path.join(os.path.dirname(sys.executable), "leasehold")
    words = [script] if os.access(script, os.X_OK) else [sys.executable, "-m", "leasehold"]
    return shlex.join(words)
