"""`python -m agentgate.cli`."""

from agentgate.cli import main

main()
