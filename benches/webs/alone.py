"""A network of our own: names and ports as on the web, and no way out.

Every bench that serves a web calls it first. The process starts anew in a network namespace that has only a loopback.
Name servers there are at port 53 and web servers at 80 and 443, whatever else uses these ports on the machine. A
crawler in there reaches nothing outside. It needs Linux, and either root or a kernel that lets people make
namespaces.
"""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

_MARK = "FYKE_BENCH_ALONE"
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40
NAME_SERVER = "127.0.0.1"


def go_alone() -> None:
    """Start this program again in a network of its own, unless it is in one. Call it before any thread starts."""
    if _MARK in os.environ:
        del os.environ[_MARK]
        _bring_up_loopback()
        _ask_only(NAME_SERVER)
        return
    if not can_go_alone():
        raise SystemExit(
            "this bench needs a network of its own, which this system refuses: it takes unshare (util-linux),"
            " and root or a kernel that lets people make namespaces"
        )
    os.environ[_MARK] = "1"
    os.execvp("unshare", [*_unshare(), sys.executable, *sys.argv])


def can_go_alone() -> bool:
    """Return whether this system gives us a network of our own."""
    if not shutil.which("unshare"):
        return False
    return subprocess.run([*_unshare(), "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def _unshare() -> list[str]:
    return ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def _bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING))


def _ask_only(name_server: str) -> None:
    """Let all programs in here ask `name_server`: only our namespace sees the file like this."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"nameserver {name_server}\noptions timeout:2 attempts:3\n")
        file.flush()
        Path(file.name).chmod(0o644)
        subprocess.run(["mount", "--bind", file.name, "/etc/resolv.conf"], check=True)
