"""Rehearsed failures: what a drill is, how it is run, and what it has to show.

A drill is run twice on the same load and seed: *before*, as things were without the mechanism that it is about, and
*after*, with the defaults. `drill` reads it from its folder in `drills/`, `rehearsal` runs it on a scene (a gate with
agents at work, in virtual or in real time), `figures` counts what came of it, `bars` says whether that is good enough.
"""
