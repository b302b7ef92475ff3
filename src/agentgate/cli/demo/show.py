"""A run as a person (or a program) meets it: progress, figures, the exit code, and where to look when it failed."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console

from agentgate.cli import exits
from agentgate.cli.demo.crew import CrewProblem
from agentgate.cli.demo.judge import COMPLETION_RATE_MIN
from agentgate.cli.demo.result import Result
from agentgate.cli.demo.run import Wish, new_story, run_demo
from agentgate.cli.demo.screen import shown, summary
from agentgate.cli.demo.story import Story
from agentgate.cli.exits import CommandError
from agentgate.cli.output import print_json, say

FINDINGS_SHOWN: Final = 10


def show(wish: Wish, keep: Path | None, *, as_json: bool) -> int:
    """Run the demo; returns the exit code. `keep`: a new folder for everything it writes, which then stays."""
    folder = _folder(keep)
    story = new_story(wish)
    try:
        with shown(story, Console(stderr=as_json, quiet=as_json and not sys.stderr.isatty())):
            result = asyncio.run(_until_told_to_stop(wish, story, folder))
    except (KeyboardInterrupt, asyncio.CancelledError):
        _tidy(folder, keep)
        say(f"agentgate demo: stopped; {len(story.endings)} of {wish.orders} orders had their answer")
        return exits.INTERRUPTED
    except CrewProblem as problem:
        for line in f"agentgate demo: {problem}\nThe logs are in {folder}".splitlines():
            say(line)
        return exits.FAILED
    except BaseException:
        say(f"agentgate demo: failed; the logs are in {folder}")
        raise
    if as_json:
        print_json(result.as_json())
    else:
        Console(highlight=False).print(summary(result))
    return _verdict(result, folder, keep)


def _folder(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="agentgate-demo-"))
    try:
        keep.mkdir(parents=True)
    except OSError as error:
        raise CommandError(
            f"--keep {keep}: {error.strerror}; name a folder that is not there yet", exits.MISUSED
        ) from None
    return keep.resolve()


def _tidy(folder: Path, keep: Path | None) -> None:
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"Logs, store and effects are in {folder}")


async def _until_told_to_stop(wish: Wish, story: Story, folder: Path) -> Result:
    """Ctrl-C cancels this task (asyncio's doing), and so does `kill`."""
    running = asyncio.current_task()
    assert running is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    return await run_demo(wish, story, folder)


def _verdict(result: Result, folder: Path, keep: Path | None) -> int:
    verdict = result.verdict
    for finding in verdict.findings[:FINDINGS_SHOWN]:
        say(f"  {finding}")
    if result.holds:
        say(last_line(result))
        _tidy(folder, keep)
        return exits.DONE
    say(
        f"agentgate demo: the bars do not hold: completion rate {verdict.completion_rate:.4f} "
        f"(at least {COMPLETION_RATE_MIN}), effects twice {verdict.effects_twice} (0), circles of waits resolved "
        f"{result.counts.deadlocks_resolved} of {result.counts.deadlocks_found}. Logs and effects are in {folder}"
    )
    return exits.FAILED


def last_line(result: Result) -> str:
    """Of a run whose bars hold: no praise for circles where nobody looked for them."""
    well = "The bars hold: nearly every order was completed, nothing was done twice"
    if result.wait_graph != "off":
        return f"{well}, no known circle stood."
    return f"{well}; circles were not looked for; the longest wait was {result.counts.longest_wait_ms / 1000:.1f} s."
