"""What a drill is. Each has a folder in `drills/`: `drill.toml`, and the files of its agents.

A drill has three phases: `load`, in which all is well; `faults`, in which what goes wrong is sent as well; and `quiet`.
In which of them a kind of call is made is said beside it. All times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from agentgate.chaos.bars import Bar
from agentgate.chaos.figures import is_figure
from agentgate.errors import ConfigError
from agentgate.model import Effect

Phase = Literal["load", "faults", "quiet"]
Run = Literal["before", "after"]

FILE: Final = "drill.toml"


class Load(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls of one kind: so many a second in these phases, each `after_s` later than drawn.

    Their business keys are `keys` and a number, so that two loads with the same `keys` speak of the same objects.
    `again_after_s`: each is made once more so much later, and does not join the first. `timeout_s`: the caller's own.
    """

    name: str
    target: str
    task_type: str
    during: tuple[Phase, ...]
    per_s: float
    keys: str = "order"
    effect: Effect = "write"
    payload: Any = None
    after_s: float = 0.0
    again_after_s: float | None = None
    timeout_s: float | None = None


class Drill(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rehearsed failure. `agents` are files beside it; `fault` is the load whose calls go wrong.

    `expected_s`: when, after the last fault, the last call has ended. `settings`: of the gate, by run.
    """

    title: str
    story: str
    before: str
    after: str
    agents: tuple[str, ...]
    fault: str
    phases: dict[Phase, float]
    loads: tuple[Load, ...]
    bars: tuple[Bar, ...]
    expected_s: float
    seed: int = 7
    settings: dict[Run, dict[str, str | int | float | bool]] = {}

    def begins_at(self, phase: Phase) -> float:
        """When this phase begins, from the beginning of the run."""
        order: tuple[Phase, ...] = ("load", "faults", "quiet")
        return sum(self.phases[earlier] for earlier in order[: order.index(phase)])

    @property
    def lasts_s(self) -> float:
        """The phases together; calls that are still open then are waited for."""
        return sum(self.phases.values())

    def all_bars(self) -> tuple[Bar, ...]:
        """Those that it names, and the time it is expected to take."""
        return *self.bars, Bar(figure="rest_after_s", at_most=self.expected_s, meaning="until the last call has ended")


class Found(Struct, frozen=True):
    """A drill, its name, and the folder in which it and its agents are."""

    name: str
    folder: Path
    drill: Drill

    def agent_files(self) -> Sequence[Path]:
        """One file an agent."""
        return [self.folder / f"{agent}.py" for agent in self.drill.agents]


def drills() -> Mapping[str, Found]:
    """All drills of this package, by their names."""
    shipped = Path(str(resources.files("agentgate.chaos"))) / "drills"
    found = (read_drill(file.parent) for file in sorted(shipped.glob(f"*/{FILE}")))
    return {one.name: one for one in found}


def read_drill(folder: Path) -> Found:
    """The drill in this folder, which it is named after; raises `ConfigError`."""
    file = folder / FILE
    try:
        drill = msgspec.toml.decode(file.read_bytes(), type=Drill)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{file}: {error}") from None
    flaw = _flaw(drill)
    if flaw:
        raise ConfigError(f"{file}: {flaw}")
    return Found(folder.name.replace("_", "-"), folder, drill)


def _flaw(drill: Drill) -> str:
    names = [load.name for load in drill.loads]
    if drill.fault not in names:
        return f"`fault` is {drill.fault!r}, and there is no load of that name"
    if set(drill.phases) != {"load", "faults", "quiet"}:
        return "`phases` are load, faults and quiet, each with its seconds"
    unknown = [bar.figure for bar in drill.bars if not is_figure(bar.figure, names)]
    if unknown:
        return f"there is no figure {unknown[0]!r}"
    return next((f"the bar of {bar.figure} has no bound" for bar in drill.bars if not bar.has_bound), "")
