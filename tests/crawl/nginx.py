"""A real web server over folders of real pages, in a process of its own."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import free_port

NGINX = Path("/usr/sbin/nginx")
CONFIG = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 512; }}
http {{
  include /etc/nginx/mime.types; default_type application/octet-stream;
  access_log off; sendfile on; {options}
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen 127.0.0.1:{port}; root {root}; index index.html; }}
}}
"""


@contextmanager
def nginx(root: Path, options: str = "") -> Iterator[str]:
    """The URL of `root`, served until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        Path(folder).chmod(0o755)
        config = Path(folder) / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        config.write_text(user + CONFIG.format(folder=folder, port=port, root=root, options=options))
        server = subprocess.Popen([NGINX, "-c", str(config)], stderr=subprocess.DEVNULL)
        try:
            _await(port)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.wait()


def _await(port: int) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return
