"""What the platform asks of the outside world, as small Protocols."""
