"""Loops that watch the whole."""
