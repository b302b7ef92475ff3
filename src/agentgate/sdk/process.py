"""An agent as a process: connects to its gate, says how it fares, stops in good order.

Exit codes: 0 stopped and nothing left in hand; 1 stopped with work unfinished; 75 (EX_TEMPFAIL) the gate asked for a
restart, so a supervisor starts it again; 78 (EX_CONFIG) a setting is wrong or the gate refuses this agent; 130 a second
Ctrl-C.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Final, NoReturn

from agentgate.errors import ConfigError, LinkDown
from agentgate.model.card import served_type
from agentgate.model.link import DrainParams, Welcome
from agentgate.sdk import clock
from agentgate.sdk.agent import Agent
from agentgate.sdk.credentials import credentials
from agentgate.sdk.greeting import Identity, not_connected
from agentgate.sdk.host import AgentHost
from agentgate.sdk.last_words import EXIT_REFUSED
from agentgate.sdk.link import Link
from agentgate.sdk.thread import LinkThread
from agentgate.sdk.websocket import gate_url, websocket

EXIT_UNFINISHED: Final = 1
EXIT_RESTART: Final = 75
EXIT_INTERRUPTED: Final = 130

CLOSE_S: Final = 2.0  # for the last messages, and for cancelled handlers to clean up


def run_process(agent: Agent, url: str | None, grace_s: float) -> None:
    """Work until told to stop; exits with a code that says how it ended."""
    try:
        address = gate_url(url)
        credentials()
        agent.card()
    except ConfigError as error:
        _say(str(error))
        sys.exit(EXIT_REFUSED)
    code = asyncio.run(_work(agent, address, grace_s))
    if code:
        sys.exit(code)


async def _work(agent: Agent, url: str, grace_s: float) -> int:
    identity = Identity(agent=agent.name, instance=clock.new_instance(), card=agent.card(), pid=os.getpid())
    link = Link(websocket(url), identity, draw=clock.draw)
    thread = LinkThread(link)
    host = ProcessHost(agent, thread, url, grace_s)
    host.catch_signals()
    async with host:
        thread.start(host)
        await asyncio.wait({thread.ended, host.grace_over}, return_when=asyncio.FIRST_COMPLETED)
        if not thread.ended.done():
            await _leave_unfinished(host, thread)
        refused = thread.ended.exception()
    if isinstance(refused, LinkDown):
        _say(f"{agent.name}: the gate at {url} refuses this agent: {refused}")
        return EXIT_REFUSED
    if refused is not None:
        raise refused
    return EXIT_RESTART if host.restart_wanted else 0


async def _leave_unfinished(host: AgentHost, thread: LinkThread) -> NoReturn:
    """The grace is over. First the link goes, so that nothing that is cut off now counts as an answer."""
    _say(f"{host.agent.name}: leaves unfinished: {', '.join(host.running) or 'answers the gate has not confirmed'}")
    thread.close()
    await asyncio.wait({thread.ended}, timeout=CLOSE_S)
    await host.cancel_all(CLOSE_S)
    _exit_now(EXIT_UNFINISHED)


class ProcessHost(AgentHost):
    """The host of a process: tells people how the link fares, and listens to signals."""

    def __init__(self, agent: Agent, thread: LinkThread, url: str, grace_s: float) -> None:
        super().__init__(agent, thread.task_port(), thread_port=thread.thread_port())
        loop = asyncio.get_running_loop()
        self.grace_over: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._url = url
        self._grace_s = grace_s
        self._was_up = False
        self._has_said = False  # that there is no link

    def catch_signals(self) -> None:
        """SIGTERM and Ctrl-C stop in good order; only the main thread can hear them."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                self._loop.add_signal_handler(number, self._on_signal, number)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda number, _: self._loop.call_soon_threadsafe(self._on_signal, number))

    def drain(self, params: DrainParams) -> None:
        """Finish what is in hand within the grace."""
        if not self.is_draining:
            hand = f"; finishing {len(self.running)} in hand" if self.running else ""
            _say(f"{self.agent.name}: stopping ({params.reason or 'asked by the gate'}){hand}")
            self._loop.call_later(self._grace_s, self._end_grace)
        super().drain(params)

    def link_up(self, welcome: Welcome) -> None:
        """Connected, for the first time or again."""
        super().link_up(welcome)
        skills = [skill.task_type for skill in self.agent.card().skills]
        offers = ", ".join(name for name in skills if served_type(name) == name) or "nothing"
        what = f"to {self._url}, handles {offers}, {self.agent.concurrency} at a time"
        _say(f"{self.agent.name}: connected {'again' if self._was_up else what}")
        self._was_up, self._has_said = True, False

    def link_down(self, error: Exception) -> None:
        """Said once, not at every try."""
        super().link_down(error)
        if self._has_said:
            return
        self._has_said = True
        if self._was_up:
            _say(f"{self.agent.name}: lost the gate at {self._url} ({error}); work goes on, trying to connect again")
        else:
            _say(f"{self.agent.name}: {not_connected(self._url, error)}. Trying again until it works")

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        if self.is_draining:
            _say(f"{self.agent.name}: leaves at once ({name}); unfinished: {', '.join(self.running) or 'nothing'}")
            _exit_now(EXIT_INTERRUPTED)
        self.drain(DrainParams(reason=name))

    def _end_grace(self) -> None:
        if not self.grace_over.done():
            self.grace_over.set_result(None)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _exit_now(code: int) -> NoReturn:
    """Without waiting for handlers in threads, which nobody can interrupt."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
