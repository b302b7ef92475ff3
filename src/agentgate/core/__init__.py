"""Pure decisions: no await, I/O, clock, chance or logging; time and chance are arguments."""
