"""Compiles `fyke.harvest.scanner` where Fyke is installed, if a C compiler is there.

Run by hatchling. Without a compiler, or with FYKE_PURE=1, nothing is compiled and everything works: pages then take
longer to read.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = Path("fyke") / "harvest"


class Scanner(BuildHookInterface[Any]):
    """Puts the compiled scanner beside its source, and into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is made, or an editable one."""
        if self.target_name != "wheel":
            return
        compiled = compile_scanner(Path(self.root) / "src" / PLACE)
        if compiled is not None:
            build_data["force_include"][str(compiled)] = str(PLACE / compiled.name)
            build_data["pure_python"], build_data["infer_tag"] = False, True


def compile_scanner(folder: Path, into: Path | None = None) -> Path | None:
    """The module made of `scanner.c` in `folder`; None where it cannot be made."""
    said = {name: sysconfig.get_config_var(name) for name in ("LDSHARED", "CCSHARED", "EXT_SUFFIX")}
    if os.environ.get("FYKE_PURE") == "1" or not said["LDSHARED"]:
        return None
    compiled = (into or folder) / f"scanner{said['EXT_SUFFIX']}"
    options = ["-O2", *shlex.split(said["CCSHARED"] or ""), f"-I{sysconfig.get_path('include')}"]
    command = [*shlex.split(said["LDSHARED"]), *options, str(folder / "scanner.c"), "-o", str(compiled)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"fyke: the scanner was not compiled ({error}); pages are read without it", file=sys.stderr)
        return None
    return compiled
