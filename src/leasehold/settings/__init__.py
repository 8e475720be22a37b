"""Settings that are in force for a store while programs run: `leases.settings`.

- ``catalog``       every setting: type, default, where it can be set
- ``law``           what a change is, and who may make it
- ``questions``     what can be asked
- ``housekeeping``  what they have done in the background
- ``aio``           the face for tasks; ``blocking``: for threads, generated
- ``commands``      `leasehold config`
"""

from leasehold.settings.catalog import SETTINGS, Setting
from leasehold.settings.law import Changed
from leasehold.settings.questions import Effective, SettingState

__all__ = ["SETTINGS", "Changed", "Effective", "Setting", "SettingState"]
