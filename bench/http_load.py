"""The load of `bench.http` and the upstream it is for: one process, one loop, one core.

Both are written on bare sockets: a request and its answer cost this process about 20 us when nobody is between them,
so that whatever is between them is what a phase waits for. At full load every connection sends its next request when
the last is answered. At a steady rate requests leave by the clock, and a request's time runs from when it was due; the
loop spins meanwhile, because sleeping costs more than what is measured.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Final

import psutil
from msgspec import Struct

from bench import http_wire
from bench.peers import LOOPBACK, Upstream

READ_MAX: Final = 1 << 18
CONNECT_S: Final = 5.0
LEFT_OVER_S: Final = 10.0  # for requests that are still out when a phase ends
SHOWN_MAX: Final = 300
_numbers: Final = itertools.count(1)  # keys are unique in a whole measurement


class Job(Struct, frozen=True, kw_only=True):
    """One phase."""

    port: int
    request: bytes
    pids: tuple[int, ...]
    """The processes whose CPU time is asked for."""
    core: int
    """Where they run."""
    connections: int
    seconds: float
    warm_up_s: float
    per_s: float | None
    """The steady rate; None is full load."""


class Took(Struct, frozen=True, kw_only=True):
    """What a phase came to."""

    latencies: list[float]
    """Of each request that was answered, in seconds."""
    seconds: float
    cpu_s: float
    load_idle: float
    """The share of time in which the core of this process had nothing to do."""
    target_idle: float
    """The same of the target's core."""
    others: float
    """How much of the two cores was taken by processes that have no part in this, in cores."""
    unsent: int
    """Requests that were due, but had not left at the end: the steady rate was too much."""


class Failed(Struct, frozen=True):
    """A phase that came to nothing, and why."""

    why: str


def main(upstream: Upstream, parent: Connection) -> None:
    """Tell the parent the port of the upstream, then do each job it sends, until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted as well, and hangs up
    loop = Loop()
    parent.send(listen(loop, upstream))
    jobs: deque[Job | None] = deque()
    loop.add(parent.fileno(), lambda: jobs.append(_next_job(parent)))
    while True:
        while not jobs:
            loop.turn(None)
        job = jobs.popleft()
        if job is None:
            return
        with contextlib.suppress(ConnectionError):  # it hung up meanwhile
            parent.send(_done(loop, job))


def _done(loop: Loop, job: Job) -> Took | Failed:
    try:
        return Phase(loop, job).run()
    except (RuntimeError, OSError) as error:
        return Failed(str(error))


class Loop:
    """Which socket is readable, and who reads it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}

    def add(self, fd: int, reader: Callable[[], None]) -> None:
        """Call the reader whenever there is something to read."""
        self._readers[fd] = reader
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Forget a socket; it is still open."""
        del self._readers[fd]
        self._epoll.unregister(fd)

    def turn(self, wait_s: float | None) -> None:
        """Wait for something to read, and have it read."""
        for fd, _ in self._epoll.poll(wait_s):
            self._readers[fd]()


def listen(loop: Loop, upstream: Upstream) -> int:
    """Answer on a free port of loopback from now on; returns the port."""
    listener = socket.create_server((LOOPBACK, 0), backlog=1024)
    listener.settimeout(0)
    loop.add(listener.fileno(), lambda: _accept(loop, listener, upstream))
    port: int = listener.getsockname()[1]
    return port


def _accept(loop: Loop, listener: socket.socket, upstream: Upstream) -> None:
    sock, _ = listener.accept()
    Served(loop, sock, upstream)


class Served:
    """A connection to the upstream."""

    def __init__(self, loop: Loop, sock: socket.socket, upstream: Upstream) -> None:
        self._loop = loop
        self._sock = _made_ready(sock)
        self._answers = upstream.answers
        self._otherwise = upstream.otherwise
        self._unread = b""
        loop.add(sock.fileno(), self._read)

    def _read(self) -> None:
        try:
            data = self._sock.recv(READ_MAX)
        except ConnectionError:
            data = b""
        if not data:
            self._loop.remove(self._sock.fileno())
            self._sock.close()
            return
        if self._unread:
            data = self._unread + data
        if http_wire.is_complete(data):
            self._unread = b""
            self._sock.sendall(self._answers.get(http_wire.path(data), self._otherwise))
        else:
            self._unread = data


class Client:
    """A connection to the target, with one request out at most."""

    def __init__(self, sock: socket.socket, request: bytes, done: Callable[[Client, float], None]) -> None:
        self.sock = _made_ready(sock)
        self._request = request
        self._is_numbered = http_wire.NUMBER in request
        self._done = done
        self._since = 0.0
        self._unread = b""

    def send(self, since: float) -> None:
        """Send the next request; its time runs from `since`."""
        self._since = since
        if self._is_numbered:
            self.sock.sendall(self._request.replace(http_wire.NUMBER, b"%08x" % next(_numbers)))
        else:
            self.sock.sendall(self._request)

    def read(self) -> None:
        """Take what there is of the answer."""
        data = self.sock.recv(READ_MAX)
        if not data:
            raise RuntimeError("the target closed a connection")
        if self._unread:
            data = self._unread + data
        if not http_wire.is_complete(data):
            self._unread = data
            return
        self._unread = b""
        if http_wire.status(data) != http_wire.OK:
            raise RuntimeError(f"a request failed: {data[:SHOWN_MAX].decode(errors='replace')}")
        self._done(self, time.perf_counter() - self._since)


class Phase:
    """One job, from its connections to its figures."""

    def __init__(self, loop: Loop, job: Job) -> None:
        self._loop = loop
        self._job = job
        self._latencies: list[float] = []
        self._idle: deque[Client] = deque()
        self._is_over = False
        self._clients: set[Client] = set()

    def run(self) -> Took:
        """Warm up, measure, wait for what is out, hang up."""
        job = self._job
        run = self._fully if job.per_s is None else self._steadily
        try:
            for number in range(job.connections):
                self._connect(number)
            run(job.warm_up_s)
            before = Cores(job)
            self._latencies = []
            unsent = run(job.seconds)
            latencies, after = self._latencies, Cores(job)
            self._drain()
        finally:
            for client in list(self._clients):
                self._hang_up(client)
        if not latencies:
            raise RuntimeError("no request was answered during a phase: this machine is too busy to measure on")
        return Took(latencies=latencies, unsent=unsent, **after.since(before))

    def _connect(self, number: int) -> None:
        sock = socket.create_connection((LOOPBACK, self._job.port), CONNECT_S)
        client = Client(sock, self._job.request.replace(http_wire.SENDER, b"%08x" % number), self._done)
        self._clients.add(client)
        self._idle.append(client)
        self._loop.add(sock.fileno(), client.read)

    def _done(self, client: Client, latency_s: float) -> None:
        self._latencies.append(latency_s)
        if self._is_over:
            self._hang_up(client)
        elif self._job.per_s is None:
            client.send(time.perf_counter())
        else:
            self._idle.append(client)

    def _fully(self, seconds: float) -> int:
        """Every connection sends its next request when the last is answered."""
        until = time.perf_counter() + seconds
        while self._idle:
            self._idle.popleft().send(time.perf_counter())
        while (left_s := until - time.perf_counter()) > 0:
            self._loop.turn(left_s)
        return 0

    def _steadily(self, seconds: float) -> int:
        """Requests leave by the clock, each on the connection that has been idle longest; returns how many did not."""
        per_s = self._job.per_s
        assert per_s is not None
        due = time.perf_counter()
        until = due + seconds
        while (now := time.perf_counter()) < until:
            while due <= now and self._idle:
                self._idle.popleft().send(due)
                due += 1 / per_s
            self._loop.turn(0)
        return max(0, int((until - due) * per_s))

    def _drain(self) -> None:
        """Hang up on each connection that has nothing out; a target may close those that are idle for long."""
        self._is_over = True
        while self._idle:
            self._hang_up(self._idle.popleft())
        until = time.perf_counter() + LEFT_OVER_S
        while self._clients:
            if (left_s := until - time.perf_counter()) <= 0:
                raise RuntimeError(f"{len(self._clients)} requests were never answered")
            self._loop.turn(left_s)

    def _hang_up(self, client: Client) -> None:
        self._clients.remove(client)
        self._loop.remove(client.sock.fileno())
        client.sock.close()


class Cores:
    """What processor time had been spent, and where, at a moment."""

    def __init__(self, job: Job) -> None:
        [own] = os.sched_getaffinity(0)
        self.at = time.perf_counter()
        self.target_s = cpu_time_s(job.pids)
        self.ours_s = self.target_s + time.process_time()
        times = psutil.cpu_times(percpu=True)
        self.load_idle_s, self.target_idle_s = (times[core].idle + times[core].iowait for core in (own, job.core))

    def since(self, before: Cores) -> dict[str, float]:
        """What was spent since an earlier moment, as fields of `Took`."""
        seconds = self.at - before.at
        return {
            "seconds": seconds,
            "cpu_s": self.target_s - before.target_s,
            "load_idle": (load_idle := (self.load_idle_s - before.load_idle_s) / seconds),
            "target_idle": (target_idle := (self.target_idle_s - before.target_idle_s) / seconds),
            "others": 2 - load_idle - target_idle - (self.ours_s - before.ours_s) / seconds,
        }


def cpu_time_s(pids: Sequence[int]) -> float:
    """User and system time of these processes, all their threads included."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(one.user + one.system for one in times)


def _made_ready(sock: socket.socket) -> socket.socket:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(0)
    return sock


def _next_job(parent: Connection) -> Job | None:
    try:
        job: Job = parent.recv()
    except (EOFError, ConnectionError):
        return None
    return job
