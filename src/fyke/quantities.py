"""Quantities as people write them: `8e9`, `500M`, `8GiB`, `675MB/s`, `10m`, and back.

The command line and `fyke.lab.plan.question` read with it, and reports write. Invariant: a written quantity is read
back as the same, except for the digits that rounding to three took.
"""

import re

from fyke.core.errors import ConfigurationError

_NUMBER = re.compile(r"((?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,3})?) ?([A-Za-z/]*)")
_PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_LEAST, _MOST = 1e-3, 1e18  # far beyond any machine, and no sum of them overflows

_PLAIN = {"": 1.0}
_COUNTS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}  # B as in billion
_BYTES = (
    {prefix: 1000.0**power for prefix, power in _PREFIXES.items()}
    | {f"{prefix}B": 1000.0**power for prefix, power in _PREFIXES.items()}
    | {f"{prefix}iB": 1024.0**power for prefix, power in _PREFIXES.items() if prefix}
)
_SPEEDS = {f"{unit}/s": factor for unit, factor in _BYTES.items() if unit.endswith("B")} | {
    f"{prefix}bit/s": 1000.0**power / 8 for prefix, power in _PREFIXES.items()
}
_DURATIONS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _read(option: str, text: str, units: dict[str, float], kind: str, right: str, *, or_none: bool = False) -> float:
    """Return the value of `text`, which must be `kind`, such as `right`; `or_none`: 0 is allowed."""
    match = _NUMBER.fullmatch(text)
    value = float(match[1]) * units[match[2]] if match and match[2] in units else -1.0
    if not (_LEAST <= value <= _MOST or (or_none and value == 0)):
        raise ConfigurationError(f"{option} {text}: {'too much' if value > _MOST else f'not {kind}'}; write {right}")
    return value


def read_count(option: str, text: str) -> float:
    """Read `8e9`, `8B`, `500M` or `3100`. Raises ConfigurationError naming `option`."""
    return _read(option, text, _COUNTS, "a number above 0", "8e9, 500M or 3100")


def read_bytes(option: str, text: str) -> float:
    """Read `8GB`, `8GiB` or `21.2kB` in bytes. Raises ConfigurationError naming `option`."""
    return _read(option, text, _BYTES, "a size", "8GB, 8GiB or 21.2kB")


def read_speed(option: str, text: str) -> float:
    """Read `675MB/s`, `675MiB/s` or `1Gbit/s` in bytes a second. Raises ConfigurationError naming `option`."""
    return _read(option, text, _SPEEDS, "a speed", "675MB/s, 675MiB/s or 1Gbit/s")


def read_share(option: str, text: str) -> float:
    """Read `0.15`, `1/9` or `1`, above 0 and at most 1. Raises ConfigurationError naming `option`."""
    share = "a share", "a number above 0 and at most 1, such as 0.15 or 1/9"
    above, _, below = text.partition("/")
    value = _read(option, above, _PLAIN, *share) / (_read(option, below, _PLAIN, *share) if below else 1.0)
    if value > 1:
        raise ConfigurationError(f"{option} {text}: not {share[0]}; write {share[1]}")
    return value


def read_duration(option: str, text: str, *, or_none: bool = False) -> float:
    """Read `90`, `90s`, `10m`, `2h` or `1d` in seconds; `or_none`: also 0. Raises ConfigurationError naming
    `option`."""
    return _read(option, text, _DURATIONS, "a duration", "90s, 10m or 2h", or_none=or_none)


def read_whole(option: str, text: str) -> int:
    """Read a whole number: `1M`, `1.5k`. Raises ConfigurationError naming `option`."""
    value = read_count(option, text)
    if value != round(value):
        raise ConfigurationError(f"{option} {text}: not a whole number; write 300k, 1M or 1234567")
    return round(value)


def number(value: float, *, as_given: bool = False) -> str:
    """Write three digits, or all of a whole number: `0.189`, `2.71`, `4,192`; `as_given`: all that a person gave."""
    if as_given:
        return f"{value:,.12g}"
    rounded = float(f"{value:.3g}")
    return f"{value:,.0f}" if rounded >= 100 else f"{rounded:.12g}"


def _scaled(value: float, names: tuple[str, ...], *, as_given: bool = False) -> str:
    rank = 0
    while rank < len(names) - 1 and float(f"{value:.3g}") >= 1000:
        value, rank = value / 1000, rank + 1
    return f"{number(value, as_given=as_given)} {names[rank]}".rstrip()


def count_text(value: float, *, as_given: bool = False) -> str:
    """Write `8 billion`, `1.5 million`."""
    if value < 1e6:
        return number(value, as_given=as_given)
    return _scaled(value / 1e6, ("million", "billion", "trillion"), as_given=as_given)


def count_mark(value: float) -> str:
    """Write the same, short: `8B`, `1.5M`."""
    return _scaled(value, ("", "k", "M", "B", "T")).replace(" ", "")


def bytes_text(value: float, *, as_given: bool = False) -> str:
    """Write `420 GB`."""
    return _scaled(value, ("B", "kB", "MB", "GB", "TB", "PB", "EB"), as_given=as_given)


def speed_text(value: float, *, as_given: bool = False) -> str:
    """Write `8.18 MB/s`."""
    return f"{bytes_text(value, as_given=as_given)}/s"


def bits_text(value: float, *, as_given: bool = False) -> str:
    """Write bytes a second as networks are sold: `1 Gbit/s`."""
    names = ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s", "Ebit/s")
    return _scaled(8 * value, names, as_given=as_given)


def share_text(value: float, *, as_given: bool = False) -> str:
    """Write `15 %`."""
    return f"{number(100 * value, as_given=as_given)} %"


def time_text(seconds: float) -> str:
    """Write a time in the largest unit of which there are two: `12 s`, `5.1 hours`, `29.9 days`, `3.2 years`."""
    for name, length_s in (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length_s:
            return f"{count_text(seconds / length_s)} {name}"
    return f"{number(seconds)} s"


def size(count: float) -> str:
    """Write bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    """Write seconds for people: `1h02m`, `3m05s`, `12s`."""
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 60}m{whole % 60:02}s" if whole >= 60 else f"{whole}s"


def counted(count: int, noun: str) -> str:
    """Write `1 host`, `2,000 hosts`."""
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun}"
