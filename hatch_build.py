"""Compiles the parts in C where Fyke is installed, if a C compiler is there.

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

SOURCES = [
    Path("fyke/core/joiner.c"),
    Path("fyke/core/walker.c"),
    Path("fyke/harvest/weigher.c"),
    Path("fyke/harvest/scanner.c"),
]


class Compiled(BuildHookInterface[Any]):
    """Puts what was compiled beside its source, and into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is made, or an editable one."""
        if self.target_name != "wheel":
            return
        for source in SOURCES:
            compiled = compile_module(Path(self.root) / "src" / source)
            if compiled is not None:
                build_data["force_include"][str(compiled)] = str(source.with_name(compiled.name))
                build_data["pure_python"], build_data["infer_tag"] = False, True


def compile_module(source: Path) -> Path | None:
    """The module made of `source`, beside it; None where it cannot be made."""
    said = {name: sysconfig.get_config_var(name) for name in ("LDSHARED", "CCSHARED", "EXT_SUFFIX")}
    if os.environ.get("FYKE_PURE") == "1" or not said["LDSHARED"]:
        return None
    compiled = source.with_suffix(said["EXT_SUFFIX"])
    options = ["-O2", *shlex.split(said["CCSHARED"] or ""), f"-I{sysconfig.get_path('include')}"]
    try:
        command = [*shlex.split(said["LDSHARED"]), *options, str(source), "-o", str(compiled)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"fyke: {source.name} was not compiled ({error}); what it does is done without it", file=sys.stderr)
        return None
    return compiled
