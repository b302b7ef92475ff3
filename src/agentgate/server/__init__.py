"""The gate's sockets: the link endpoint, and the HTTP API that people and programs read.

Begin with `service`. Nothing is imported here, because options are read by commands that serve nothing.
"""
