"""The places of contents: the newest of each, from the moment it is entered, also after a crash."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fyke.archive.payloads import ENTRY_BYTES, Payloads, Place
from fyke.disk.checkpoint import Checkpoint

STEPS = st.lists(st.one_of(st.integers(1, 12), st.sampled_from(["kept", "crash"])), max_size=40)


@given(STEPS, st.integers(1, 5))
def test_what_was_entered_is_found(steps: list[int | str], most: int) -> None:
    model: dict[int, Place] = {}
    safe: tuple[dict[int, Place], dict[str, Any] | None] = {}, None
    with tempfile.TemporaryDirectory() as name:
        checkpoint = Checkpoint(Path(name) / "shard")
        payloads = Payloads(checkpoint.store, most * ENTRY_BYTES)
        for number, step in enumerate(steps):
            if step == "kept":
                safe = dict(model), payloads.state()
                snapshot = checkpoint.take({"payloads": safe[1] or {}})
                snapshot.make_durable()
                checkpoint.committed(snapshot)
            elif step == "crash":
                payloads.close()
                checkpoint.close()
                checkpoint = Checkpoint(Path(name) / "shard")
                model = dict(safe[0])
                payloads = Payloads(checkpoint.store, most * ENTRY_BYTES, checkpoint.store.participant("payloads"))
            else:
                model[int(step)] = Place(number, 100 * number, 7)
                payloads.enter(int(step), model[int(step)])
            asked = list(range(14))
            known = payloads.known(asked)
            assert {key: place for key in asked if (place := payloads.entered(key) or known.get(key))} == model
        payloads.close()
        checkpoint.close()
