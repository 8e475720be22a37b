"""`python -m leasehold` is the command `leasehold`."""

import sys

from leasehold.cli.entry import main

sys.exit(main())
