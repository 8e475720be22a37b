"""The real law and engine in a world where everything goes wrong, from a seed.

A simulation runs the kernel, `run_batch`, the trust window and the keeper as they are, in virtual time and
without threads. Around them everything is made up: several engines on one store that fails in every way the
port allows, clients whose clocks drift, a network that loses, delays and repeats, processes that pause
longer than their leases last, die and come back, times in which no engine is there, a machine that reboots,
a clock that goes back, files that are restored and copied. One seed is one world; it can be run again, line
by line.

Leases are one family of records. A *troupe* plays another one in the same worlds, with actors and a judge of
its own: `simulate(seed, troupes=[...])` (`troupe`, `cast`). `work_troupe`, `workflow_troupe`,
`settings_troupe`, `access_troupe` and `guard_troupe` play a family each; on the command line each has its
turn.

What is checked, all the time:

- the ledger replays to the tables, and no invariant is broken, for every family (`witness`, `table_judge`)
- tokens rise above every token that was ever committed, through reboots, lost history, restores and copies
- time does to each lease what a second, independent telling of the law says it does (`truth`)
- budgets add up in every part, and no child outlives, out-scopes, outspends or survives its parent, as a
  second, independent account of them says (`accounts`, `line_judge`)
- every answer was right at the moment it was given, and a request is granted once (`judge`)
- where it is crowded: nobody is overtaken, by aged priority and then by ticket; nobody waits longer than
  until it asks again for what it is entitled to, nor for somebody who is gone, nor in a circle; nothing
  is refused as a deadlock that is none; claims on several resources wait, are granted and leave whole; a
  directory and what is in it are never held in conflict; what was cancelled leaves nothing; lock-delays
  are kept; whoever has won is woken (`crowd_judge`, `wait_judge`: who is in whose way, `crowds` and
  `closings` tell a second time)
- what lapsed while no engine was there is kept for its holder until that has settled, and nothing else is
  kept closed (`settling`, `closings`)
- no two holders trust conflicting leases at the same true time (`beliefs`), but for the four cases named
  there in which nobody could have told them; then tokens still order what they do
- whatever anybody was told is in the ledger, unless a restore, a copy or a power cut of a `fast` store took
  the end of it
- when all is over, every resource can be had again

`tally` counts what happened, so that a simulator that has become tame is noticed.

Not simulated: real files, threads and sockets; the committer; two machines on one file.
"""

from simulator.tally import FAULTS, OUTCOMES, Tally
from simulator.troupe import Play, Scene, Troupe
from simulator.world import Report, SimulationFailed, simulate

__all__ = [
    "FAULTS",
    "OUTCOMES",
    "Play",
    "Report",
    "Scene",
    "SimulationFailed",
    "Tally",
    "Troupe",
    "simulate",
]
