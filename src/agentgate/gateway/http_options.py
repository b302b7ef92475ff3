"""What agents that are reached by HTTP may ask of the gate."""

from __future__ import annotations

from dataclasses import dataclass

from agentgate.core.endpoint import AllowList
from agentgate.core.ranges import require

TIME_S_MIN = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAgentOptions:
    """Registrations and probes. Times in seconds.

    - `endpoint_allow`, loopback: the gate calls what agents name, from inside the operator's network; whoever wants
      more says where.
    - `ttl_s`, 60: a registration that is not renewed ends; a third of it is when an agent should renew, so two renewals
      may fail.
    - `late_s`, 60: how long after its deadline a write is still listened to; its late answer settles its key, and after
      that nobody knows what became of it.
    - `connections_max`, 256: units that may be open at one instance, for each of which there is a connection: its
      concurrency, times `open_factor` when some of its skills rest.
    - `probe_s`, 2: as often as a link beats; three probes fit into the silence that makes an instance away.
    - `probe_timeout_s`, 2: a probe says "alive" and does no work.
    - `probes_max`, 64: probes on their way at once.
    """

    endpoint_allow: tuple[str, ...] = ("127.0.0.0/8", "::1/128")
    ttl_s: float = 60.0
    late_s: float = 60.0
    connections_max: int = 256
    probe_s: float = 2.0
    probe_timeout_s: float = 2.0
    probes_max: int = 64

    def __post_init__(self) -> None:
        AllowList(self.endpoint_allow)
        require(self, "ttl_s", "probe_s", "probe_timeout_s", low=TIME_S_MIN)
        require(self, "late_s")
        require(self, "connections_max", "probes_max", low=1)
