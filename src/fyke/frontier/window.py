"""Handed-out URLs: the visits that the fetcher holds of this shard, and each host's share of them.

The frontier fills the window from the ready queues as it runs low, and empties it by the outcomes that come back. A
host holds only its share, the visits that it comes to soon: the longer it rests after a visit, the fewer. Further URLs
wait in the spill queues, so that a slow giant delays only its own pages and never crowds out the rest (IRLbot, section
1.3). If a host *runs low* while more of it was spilled, its spill queue is read, in turn with those of other such
hosts; first that of URLs that go ahead (`fyke.frontier.rare`, and probes). So a host without an end in sight holds few.
URLs of a host that sleeps go to `fyke.frontier.asleep`. A slow host (`fyke.frontier.slow`) has one visit out, once it
is due.

Bounded: `window_visits` rows out, and `SPARSE` rows in memory for each. Invariants: a row that was admitted is out
until its outcome comes; a checkpoint must write down all rows that are out as waiting.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fyke.core.batches import U64, Kind, Mask, concat, keep, numbers, u64
from fyke.core.rests import soon_visits
from fyke.core.sorting import distinct, nth_of_each
from fyke.frontier.asleep import Asleep
from fyke.frontier.blocked import Blocked
from fyke.frontier.left_out import LeftOut
from fyke.frontier.quota import Quota
from fyke.frontier.rare import Rare
from fyke.frontier.ready import AHEAD, SPILLS, Ready
from fyke.frontier.slow import Slow
from fyke.frontier.traps.waiting import LOOK_BYTES, LOOK_ROWS, Traps, look_bytes

REFILL_ROWS = LOOK_ROWS  # taken from the ready queues at a time
SPARSE = 4  # rows in memory for each that is out, at most
SPILLS_EVERY_S = 0.05  # between two times
FEW_VISITS, FEW_S = 8, 0.5  # that a host without an end in sight holds: so many, or all that it makes in this time


class Window:
    """At most `visits` rows out, `host_visits` of them of one host. A host rests for `rest_s` as long as nothing else
    is known."""

    def __init__(self, visits: int, host_visits: int, rest_s: float = 0.0) -> None:
        self._visits = visits
        self._most = host_visits
        self._usual = max(1, soon_visits(rest_s, host_visits))
        self._shares: dict[int, int] = {}  # of hosts whose share is not the usual one
        self.slow = Slow()
        self._rooms: dict[int, int] = {}  # rows that may be out of hosts with a limit of pages, as last asked
        self._batches: dict[int, tuple[pa.RecordBatch, set[int]]] = {}  # with the places of rows that are out
        self._place: dict[int, tuple[int, int]] = {}  # of each key that is out: its batch, its row
        self._serial = 0
        self._held = 0  # rows in the batches, out or not
        self._of_host: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"Window({len(self)} of {self._visits} visits out, of {len(self._of_host)} hosts)"

    def __len__(self) -> int:
        return len(self._place)

    @property
    def low(self) -> bool:
        """True if more should be handed out."""
        return 2 * len(self) < self._visits

    def of_host(self, host: int) -> int:
        """Return how many rows of `host` are out."""
        return self._of_host.get(host, 0)

    def rests(self, hosts: Iterable[int], rests_s: Iterable[float]) -> None:
        """Note how long each of `hosts` rests after a visit."""
        for host, rest_s in zip(hosts, rests_s, strict=True):
            share = max(1, soon_visits(rest_s, self._most))
            if rest_s > 0 and self.slow.is_endless(host):
                share = min(share, max(FEW_VISITS, int(min(FEW_S / rest_s, share))))
            if share != self._usual:
                self._shares[host] = share
            else:
                self._shares.pop(host, None)
        if len(self._shares) > 2 * self._visits + len(self._of_host):  # a host with nothing out may begin anew
            self._shares = {host: share for host, share in self._shares.items() if host in self._of_host}

    def is_served(self, host: int) -> bool:
        """Return whether rows of `host` are out, or will be at a known time."""
        return host in self._of_host or host in self.slow

    def share(self, host: int) -> int:
        """Return how many rows of `host` may be out."""
        share = self._shares.get(host, self._usual)
        if host in self.slow:
            share = min(share, int(self.slow.is_due(host)))
        return min(share, self._rooms.get(host, share)) if self._rooms else share

    def has_room(self, host: int) -> bool:
        """Return whether one more row of `host` may be out."""
        return self.of_host(host) < self.share(host)

    def runs_low(self, host: int) -> bool:
        """Return whether `host` has so few rows out that it should get more."""
        share = self.share(host)
        return self.of_host(host) < (share if host in self.slow else max(1, share // 4))

    def admit(
        self, urls: pa.RecordBatch, room: npt.NDArray[np.int64] | None = None
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the rows of `urls` that fit, out from now on, and the rest. `room`: how many rows may be out of each
        row's host ([n])."""
        hosts = u64(urls, "host")
        if room is not None:
            self._note_rooms(hosts, room)
        unique, places = np.unique(hosts, return_inverse=True)
        out = np.fromiter(map(self.of_host, unique.tolist()), np.int64, len(unique))
        shares = np.fromiter(map(self.share, unique.tolist()), np.int64, len(unique))
        fits = nth_of_each(hosts) + out[places] < (shares[places] if room is None else np.minimum(shares[places], room))
        fits &= np.cumsum(fits) <= self._visits - len(self)
        admitted = keep(urls, fits)
        self.note(admitted)
        return admitted, keep(urls, ~fits)

    def _note_rooms(self, hosts: U64, room: npt.NDArray[np.int64]) -> None:
        self._rooms.update(zip(hosts.tolist(), room.tolist(), strict=True))
        if len(self._rooms) > 2 * self._visits + len(self._of_host):
            self._rooms = {host: room for host, room in self._rooms.items() if host in self._of_host}

    def note(self, urls: pa.RecordBatch) -> None:
        """Count `urls` as out from now on, whether they fit or not."""
        if not urls.num_rows:
            return
        self._of_host.update(u64(urls, "host").tolist())
        if self._held > SPARSE * len(self) + REFILL_ROWS:  # a row that stays out for long holds its batch in memory
            urls = concat([*self.rows(), urls])
            self._batches.clear()
            self._held = 0
        self._serial += 1
        rows = range(urls.num_rows)
        self._held += urls.num_rows
        self._batches[self._serial] = urls, set(rows)
        self._place.update(zip(u64(urls, "key").tolist(), zip(repeat(self._serial), rows), strict=False))

    def ended(self, keys: U64, hosts: U64) -> None:
        """Note that the visits with these keys, of these hosts (uint64[n] each), are over. Ignores keys that are not
        out, because an outcome may come twice."""
        for key, host in zip(keys.tolist(), hosts.tolist(), strict=True):
            self._end(key, host)

    def _end(self, key: int, host: int) -> None:
        place = self._place.pop(key, None)
        if place is None:
            return
        serial, row = place
        rows = self._batches[serial][1]
        rows.discard(row)
        if not rows:
            self._held -= self._batches.pop(serial)[0].num_rows
        left = self._of_host[host] - 1
        if left:
            self._of_host[host] = left
        else:
            del self._of_host[host]

    def take_out(self, keys: Iterable[int]) -> pa.RecordBatch:
        """Take out and return the rows with these keys that are out (schema `URLS`). They are not out any more."""
        places = [place for key in keys if (place := self._place.get(key)) is not None]
        starts, rows = dict.fromkeys((serial for serial, _ in places), 0), 0
        for serial in starts:
            starts[serial] = rows
            rows += self._batches[serial][0].num_rows
        urls = concat([self._batches[serial][0] for serial in starts])  # to take from each of many costs more
        urls = urls.take(pa.array([starts[serial] + row for serial, row in places], pa.int64()))
        self.ended(u64(urls, "key"), u64(urls, "host"))
        return urls

    def hosts_of(self, owners: Iterable[int]) -> list[int]:
        """Return hosts with rows out that are among `owners`, or whose domain is."""
        wanted = np.fromiter(owners, np.uint64)
        of = [u64(urls, "host")[_is_any(urls, wanted)] for urls in self.rows()]
        return distinct(np.concatenate(of)).tolist() if of else []

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows that are out."""
        for urls, rows in self._batches.values():
            yield urls if len(rows) == urls.num_rows else urls.take(pa.array(sorted(rows)))


class _Spill:
    """Knowledge of one spill queue without reading it."""

    def __init__(self, rows: int) -> None:
        self.left = rows  # until it has been read through
        self.overflowed: set[int] = set()  # hosts that are served, and have more rows here
        self.others = rows > 0  # whether there may be rows of other hosts
        self._met: set[int] = set()  # of the overflowed, in this reading
        self._met_others = False

    def put(self, hosts: Iterable[int], is_served: Callable[[int], bool]) -> None:
        """Note that rows of `hosts` were put here, or back."""
        for host in hosts:
            if is_served(host):
                self.overflowed.add(host)
                self._met.add(host)
            else:
                self.others = self._met_others = True

    def read(self, rows: int, left: int) -> None:
        """Note that `rows` were read and `left` are there now. At the end of a reading, hosts that were not met have no
        rows here."""
        self.left -= rows
        if self.left <= 0:
            self.overflowed &= self._met
            self.others = self._met_others
            self._met, self._met_others = set(), False
            self.left = left


class Refill:
    """Fills `window` from `ready` and its spill queues. Diverts URLs that are `left_out`, `blocked`, `asleep`,
    `traps`, or beyond the `quota` of their host."""

    def __init__(
        self,
        ready: Ready,
        window: Window,
        left_out: LeftOut,
        blocked: Blocked,
        asleep: Asleep,
        traps: Traps,
        quota: Quota,
    ) -> None:
        self._ready = ready
        self._window = window
        self._left_out = left_out
        self._blocked = blocked
        self._asleep = asleep
        self._traps = traps
        self._quota = quota
        self._rare = Rare()
        self._spills = [_Spill(ready.spilled_at(place)) for place in range(SPILLS + 1)]
        self._due = 0.0  # when the spill queues are next looked at
        self._place = 0  # the spill queue read last

    def __repr__(self) -> str:
        return f"Refill({self._window!r}, {self._ready!r})"

    def visits(self, now: float) -> pa.RecordBatch:
        """Return more visits (schema `URLS`), out from now on; an empty batch while the window is well filled."""
        given = []
        self._window.slow.at(now, alone=not (len(self._window) or self._others_wait))
        left_bytes = LOOK_BYTES  # traps and hosts that sleep fill no window, and may have no end
        while self._window.low and self._ready.waiting and left_bytes > 0:
            urls = self._ready.take(REFILL_ROWS)
            left_bytes -= look_bytes(urls)
            given.append(self._admit(urls, now))
        if self._ready.spilled and (now >= self._due or not len(self._window)):
            self._due = now + SPILLS_EVERY_S
            given += self._spilled(now)
        return concat([urls for urls in given if urls.num_rows])

    def overflowed(self, host: int) -> bool:
        """Return whether more rows of `host` wait on disk than are out, as far as is known."""
        return any(host in self._spills[place].overflowed for place in (host % SPILLS, AHEAD))

    @property
    def _others_wait(self) -> bool:
        """True if there may be rows of hosts that are not slow."""
        spilled = chain.from_iterable(spill.overflowed for spill in self._spills)
        return self._ready.waiting > 0 or any(host not in self._window.slow for host in spilled)

    def _admit(self, urls: pa.RecordBatch, now: float, place: int | None = None) -> pa.RecordBatch:
        """Return those of `urls` that may go out now, out from now on. `place`: of the spill queue they come from."""
        urls = self._traps.divert(self._left_out.divert(urls))
        urls = self._asleep.divert(self._blocked.divert(urls), now)
        urls = urls if place is not None else self._before_others(urls)
        owed, urls, room = self._quota.divert(urls)
        self._window.note(owed)
        admitted, excess = self._window.admit(urls, room)
        self.spill(excess, place)
        return concat([owed, admitted]) if owed.num_rows else admitted

    def _before_others(self, urls: pa.RecordBatch) -> pa.RecordBatch:
        """Let new URLs of a host without an end in sight wait with those of its URLs that wait already, or they would
        take the places of those that go ahead. Returns the others."""
        hosts = u64(urls, "host")
        waits = self._window.slow.are_endless(hosts) & (numbers(urls, "kind") != Kind.PROBE)
        waits[waits] = [self.overflowed(host) for host in hosts[waits].tolist()]
        if not waits.any():
            return urls
        self.spill(keep(urls, waits))
        return keep(urls, ~waits)

    def spill(self, urls: pa.RecordBatch, place: int | None = None) -> None:
        """Let `urls`, for which their hosts have no room, wait until their hosts run low; at `place` again if they come
        from there."""
        if urls.num_rows:
            hosts = u64(urls, "host")
            if place is None:
                ahead = self._rare.of(urls, self._window.slow.are_endless(hosts))
                ahead |= numbers(urls, "kind") == Kind.PROBE  # it is to judge those that wait
            else:
                ahead = np.full(urls.num_rows, place == AHEAD)
            places = self._ready.put_back(urls, ahead)
            for at in np.unique(places).tolist():
                counts = self._window.is_served if at != AHEAD else lambda _: True  # those that go ahead are sought
                self._spills[at].put(distinct(hosts[places == at]).tolist(), counts)

    def _spilled(self, now: float) -> Iterator[pa.RecordBatch]:
        """Yield visits from the spill queues of hosts that run low. If nothing else fills the window, reads every spill
        queue that may have rows for it."""
        low = self._window.low and not self._ready.waiting
        left_bytes = LOOK_BYTES
        for place in (AHEAD, *range(self._place + 1, SPILLS), *range(self._place + 1)):
            spill = self._spills[place]
            if left_bytes <= 0:
                break
            wants = self._window.has_room if place == AHEAD else self._window.runs_low
            low_hosts = (host for host in spill.overflowed if wants(host))
            if self._ready.spilled_at(place) and (
                (low and spill.others)
                or not len(self._window)  # rows here are of hosts that sleep, and move there
                or not all(self._asleep.holds(host, now) for host in low_hosts)
            ):
                self._place = place if place != AHEAD else self._place
                urls = self._ready.take_spilled(place, REFILL_ROWS)
                left_bytes -= look_bytes(urls)
                yield self._admit(urls, now, place)
                spill.read(urls.num_rows, self._ready.spilled_at(place))


def _is_any(urls: pa.RecordBatch, owners: U64) -> Mask:
    mask: Mask = np.isin(u64(urls, "host"), owners) | np.isin(u64(urls, "domain"), owners)
    return mask
