"""nginx with one worker and kept connections: about as little as a proxy can do."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import http_wire, processes
from bench.peers import ECHO, LOOPBACK, Place, Target

# Kept connections are never given up during a measurement; whatever nginx writes stays in its own folder.
CONFIGURATION: Final = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000000;
  upstream up {{
    server {host}:{upstream_port} max_fails=5 fail_timeout=30s;
    keepalive 1024;
    keepalive_requests 1000000000;
  }}
  server {{
    listen {host}:{port} backlog=1024;
    location / {{
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_read_timeout 10s;
      proxy_next_upstream error timeout http_502 http_503 http_504 non_idempotent;
      proxy_next_upstream_tries 3;
    }}
  }}
}}
"""


class Nginx:
    """The `nginx` on the path, if there is one."""

    name = "nginx"
    note = "nginx: one process, passes on to another server after a failure (there is none here), no access log"

    def missing(self) -> str:
        """The program, which distributions put where only an administrator's shell looks."""
        return "" if _program() else "install the distribution's package nginx-light"

    @contextlib.contextmanager
    def running(self, place: Place) -> Iterator[dict[str, Target]]:
        """In the foreground, with a configuration of its own."""
        port = processes.free_port()
        file = place.folder / "nginx.conf"
        text = CONFIGURATION.format(folder=place.folder, host=LOOPBACK, port=port, upstream_port=place.upstream_port)
        file.write_text(text, encoding="utf-8")
        arguments = [_program(), "-p", str(place.folder), "-c", str(file), "-e", str(place.folder / "error.log")]
        request = http_wire.request("POST", ECHO, place.payload)
        with processes.server(arguments, place.folder, port, request) as pid:
            yield {self.name: Target(port=port, request=request, pid=pid)}


def _program() -> str:
    usual = Path("/usr/sbin/nginx")
    return shutil.which("nginx") or (str(usual) if usual.exists() else "")
