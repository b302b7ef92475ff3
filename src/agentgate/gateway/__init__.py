"""The path of a call, top to bottom; begin reading in `gateway.py`."""
