"""The stages of a call's path, one a file; their order is in `gateway/pipeline.py`."""
