"""What the RateLimit fields say of quotas, on the real path and on virtual time."""

from __future__ import annotations

import pytest

from agentgate.config import Settings
from agentgate.core.policy import Mode
from agentgate.core.quota import QuotaLimit, QuotaOptions, TaskCost
from agentgate.model import AgentQuota, AgentSettings, Identity
from tests.sim.http_caller import READ, HttpCaller
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def test_a_quota_is_said_beside_the_rate() -> None:
    """B12, PEERS 6.5: every answer to a call names the limit that calls like it are nearest to, and what is left."""

    async def story() -> None:
        limits = (
            QuotaLimit(user="*", units=100, per_s=3600),
            QuotaLimit(task_type="pay", units=10.5, per_s=59.5, name="tills"),
        )
        settings = Settings(quota=QuotaOptions(limits=limits, costs=(TaskCost(task_type="pay", units=4),)))
        async with gate(settings=settings) as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            calls = [shop.pay(f"o{number}") for number in range(3)]
            for _ in range(2):
                bank.answer(await bank.next(), "paid")
            paid, refused = await calls[0], await calls[2]
            assert paid.headers["ratelimit-policy"] == '"sender";q=200;w=1, "tills";q=10;w=60'
            assert paid.headers["ratelimit"].endswith(', "tills";r=2;t=60')
            assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "quota_exhausted", "60")
            assert refused.headers["ratelimit"].endswith(', "tills";r=2;t=60')
            read = shop.post({**READ, "user": 'Zoë "7"'})
            bank.answer(await bank.next(), "seen")
            assert (await read).headers["ratelimit"].endswith(', "user=*";r=99;t=3600')
            assert "tills" in (await shop.pay("o0")).headers["ratelimit"]  # also of a repeat, which costs nothing
            assert "tills" not in (await shop.look(paid.body["id"])).headers["ratelimit"]  # who asks is not the call

    play(story)


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_what_is_not_enforced_is_not_said(mode: Mode) -> None:
    """I2: a limit that refuses nobody is no reason for a client to slow down."""

    async def story() -> None:
        quota = QuotaOptions(limits=(QuotaLimit(units=1, per_s=60),))
        settings = Settings(quota=quota, mechanisms={**Settings().mechanisms, "quota": mode})
        async with gate(settings=settings) as platform:
            answered = await HttpCaller(platform).post({**READ, "timeout_ms": 1000})
            assert answered.headers["ratelimit-policy"] == '"sender";q=200;w=1'

    play(story)


def test_a_limit_of_any_name_makes_a_header() -> None:
    """RFC 9651: what a string there cannot hold is not sent as it is; a tenant reads its own names."""

    async def story() -> None:
        settings = Settings(quota=QuotaOptions(limits=(QuotaLimit(agent='b\u00e4r "1"', units=1, per_s=60),)))
        async with gate(settings=settings) as platform:
            own = Identity(tenant="acme", name="shop", scopes=frozenset({"agent:bank", "submit"}))
            bank = WirePeer(platform, "bank", skills=SKILLS, identity=own).connect()
            platform.directory.configure("acme", "bank", AgentSettings(quota=AgentQuota(units=5, per_s=60)))
            read = HttpCaller(platform, own).post(READ)
            bank.answer(await bank.next(), "seen")
            assert (await read).headers["ratelimit"].endswith(', "agent=bank";r=4;t=60')
            odd = WirePeer(platform, 'b\u00e4r "1"', skills=SKILLS).connect()
            read = HttpCaller(platform).post({**READ, "target": odd.name})
            odd.answer(await odd.next(), "seen")
            assert (await read).headers["ratelimit"].endswith(', "agent=b?r ?1?";r=0;t=60')

    play(story)
