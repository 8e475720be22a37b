"""What every store has to prove, as a class of tests to inherit from.

Each behaviour that the port promises is one test with a name. Say how your store is opened, and pytest
does the rest:

    from leasehold.testing.conformance import PersistentStoreConformance

    class TestMyStore(PersistentStoreConformance):
        def open_store(self, folder, clock, families):
            return MyStore(folder / "store", clock=clock, families=families)

`folder` is a fresh folder of the test's own; opening twice in the same folder has to give the same store.
A store that does not outlive its process inherits from `StoreConformance` instead, and says in `open_again`
how a second client of the same store comes to it.

The suite works at the level of the port: it commits records it has made up, and knows nothing about the
law. It needs pytest only to be run. Tell pytest to explain its assertions before you import it:
`pytest.register_assert_rewrite("leasehold.testing.conformance")`.

Not covered: power cuts, full disks, processes that are killed. Those need the real thing.
"""

from leasehold.testing.conformance.around import Around
from leasehold.testing.conformance.committing import Committing
from leasehold.testing.conformance.documents import Documents
from leasehold.testing.conformance.history import History
from leasehold.testing.conformance.indexes import Indexes
from leasehold.testing.conformance.keeping import Keeping
from leasehold.testing.conformance.lines import Lines
from leasehold.testing.conformance.listing import Listing
from leasehold.testing.conformance.overdue import Overdue
from leasehold.testing.conformance.persisting import Persisting
from leasehold.testing.conformance.pruning import Pruning
from leasehold.testing.conformance.queues import Queues
from leasehold.testing.conformance.ranges import Ranges
from leasehold.testing.conformance.rebuilding import Rebuilding
from leasehold.testing.conformance.sharing import Sharing
from leasehold.testing.conformance.soft import Softness

__all__ = ["PersistentStoreConformance", "StoreConformance"]


class StoreConformance(
    Committing,
    Keeping,
    Indexes,
    Lines,
    Queues,
    Around,
    Documents,
    Ranges,
    Overdue,
    Listing,
    History,
    Pruning,
    Rebuilding,
    Softness,
    Sharing,
):
    """Everything that the port promises of any store."""


class PersistentStoreConformance(StoreConformance, Persisting):
    """What any store promises, and that it is all still there when the store is opened again."""
