"""The actors of a play: how they begin, and act again and again until the stage is calm."""

from collections import Counter
from collections.abc import Callable

from simulator.asking import Asker
from simulator.troupe import Scene


class Cast:
    """Processes that do something every now and then; those that are mortal die and pause on the way."""

    def __init__(
        self,
        scene: Scene,
        act: Callable[[Asker], None],
        *,
        pace: tuple[float, float] = (0.02, 0.4),
        mortals: str | None = None,
        forget: Callable[[Asker], None] = lambda actor: None,
    ) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._act = act
        self._pace = pace
        """How long they wait between acts at least and at most, in parts of a TTL."""
        self._mortals = mortals
        """What those who die are called; None: nobody does."""
        self._forget = forget
        """What becomes of what an actor knew."""
        self.noted: Counter[str] = Counter()

    def note(self, name: str) -> None:
        """Count something that was seen."""
        self.noted[name] += 1

    def start(self, number: int, most: float | None = None) -> list[Asker]:
        """Let so many begin, after at most so much of a TTL, and return them."""
        actors = [self._scene.new_actor() for _ in range(number)]
        for actor in actors:
            self._plan(actor, most)
        return actors

    def _plan(self, actor: Asker, most: float | None = None) -> None:
        least, usually = self._pace
        wait = self._scene.random.uniform(least, usually if most is None else most)
        actor.later(int(self._stage.plan.ttl_ns * wait), lambda: self._take_turn(actor))

    def _take_turn(self, actor: Asker) -> None:
        if self._stage.calm:
            return
        if self._mortals and self._stage.strikes("holder died"):  # Nobody takes the answers to what it asked.
            actor.die()
            self._forget(actor)
            self.note(f"{self._mortals} died")
            self._plan(actor, most=2)
            return
        if self._mortals and self._stage.strikes("holder paused"):
            actor.pause(self._stage.up_to(5 * self._stage.plan.ttl_ns))
            self.note(f"{self._mortals} paused")
        self._plan(actor)
        self._act(actor)
