"""Measurements: what a call costs at the gate. Run with `-m` from the checkout; never part of the ordinary suite."""
