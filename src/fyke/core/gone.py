"""Settings of earlier versions that are gone, because nobody had a reason to change them.

The `fyke.toml` of every crawl of an earlier version has them. They are skipped when it is read. A command that crawls
by a file in which one was changed says so once (`said_of_gone`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# By section and key, the value that always holds now.
GONE: Mapping[str, Mapping[str, float | bool]] = MappingProxyType(
    {
        "politeness": {
            "robots_ttl_s": 86400,
            "max_retry_after_s": 86400,
            "max_crawl_delay_s": 86400,
            "throttle_delay_s": 30,
        },
        "fetch": {"min_rate_bytes_s": 64, "max_decode_ratio": 1000, "http2": True, "max_decoded_bytes": 128 << 20},
        "dns": {"min_ttl_s": 60, "max_ttl_s": 86400, "cache_names": 50_000},
        "frontier": {"link_cache": 100_000},
    }
)

# Keys whose value another setting gives now.
FOLLOWS: Mapping[str, str] = MappingProxyType(
    {"throttle_delay_s": "twice failure_delay_s", "max_decoded_bytes": "max_body_bytes"}
)


def without_gone(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` (keys in sections) without settings that are gone."""
    return {
        name: {key: value for key, value in section.items() if key not in GONE.get(name, {})}
        if isinstance(section, dict)
        else section
        for name, section in values.items()
    }


def said_of_gone(values: Mapping[str, Any], source: str) -> str:
    """Return one line about settings in `values` (keys in sections, read from `source`) that are gone and had another
    value than the one that holds now, or ""."""
    changed = [
        f"{name}.{key} (always {FOLLOWS.get(key, str(value).lower())} now)"
        for name, section in GONE.items()
        for key, value in section.items()
        if isinstance(values.get(name), dict) and values[name].get(key, value) != value
    ]
    return f"{source}: ignored, because these settings no longer exist: {', '.join(changed)}" if changed else ""
