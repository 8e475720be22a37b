"""`python -m leasehold.cli` is `leasehold`."""

import sys

from leasehold.cli.entry import main

sys.exit(main())
