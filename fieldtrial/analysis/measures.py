# SPDX-License-Identifier: GPL-2.0-or-later
"""The measures of one cell: `stats` applied to its files. Everything is over the measured interval of the cell
unless stated otherwise, and a figure that cannot be computed raises StatsError with the reason.
"""
from functools import cached_property, lru_cache

import numpy as np

from . import stats
from .stats import StatsError

KB = 1024
# Bounds of the size classes in bytes, the upper one included; kB is 1024 bytes, as in squid.conf.
SIZES = {'small': (0, 16 * KB), 'medium': (16 * KB, 64 * KB), 'large': (64 * KB, float('inf'))}
SIZE_LABELS = {'small': 'up to 16 kB', 'medium': '16 to 64 kB', 'large': 'over 64 kB'}

#: First and largest contentful paint: columns of pages.csv.
PAINTS = ('fcp_s', 'lcp_s')
FAILED = ('refused', 'error')
BLOCK_S = 5.0


def settle_s(length_s):
    """Start of a phase that is excluded from measurement, s: a tenth of it, at least 5 s (data of the previous phase in
    flight) and at most 20 s."""
    return min(20.0, max(5.0, length_s / 10))


class Sample:
    """Latencies with the data needed to resample them by blocks of time."""

    def __init__(self, durations, finished, block, blocks, horizon):
        self._durations, self._finished = durations, finished
        self._members = [np.flatnonzero(block == number) for number in range(blocks)]
        self.blocks, self.horizon = blocks, horizon
        self.survival = stats.Survival(durations, finished)

    def redrawn(self, drawn):
        """The Survival of the blocks `drawn`; StatsError if they hold no request."""
        chosen = np.concatenate([self._members[number] for number in drawn])
        return stats.Survival(self._durations[chosen], self._finished[chosen])

    def mean(self, survival=None):
        """Mean latency in s, restricted to the time for which the first request of the interval was observed."""
        return (survival or self.survival).mean(self.horizon)

    def quantile(self, share, survival=None):
        """Latency in s that `share` of the requests do not exceed; inf when too few finished."""
        return (survival or self.survival).quantile(share)


class Measures:
    """The figures of one Cell."""

    def __init__(self, cell):
        self.cell = cell
        # One sample serves many figures, and the bootstrap needs it again for every draw.
        self.sample = lru_cache(maxsize=None)(self._sample)
        self.page_sample = lru_cache(maxsize=None)(self._page_sample)

    def _interval(self, start, stop):
        """(start, stop); those of the measured interval in place of None."""
        return self.cell.t_start if start is None else start, self.cell.t_stop if stop is None else stop

    # --- bytes -------------------------------------------------------------------------------------------------------

    def user_bytes(self, start=None, stop=None):
        """{user: body bytes received in [start, stop]}; the measured interval if not given."""
        cell = self.cell
        start, stop = self._interval(start, stop)
        times = cell.received['t']
        return {user: stats.increase(times, cell.received[user], start, stop) if user in cell.received else 0.0
                for user in cell.users}

    def class_bytes(self, start=None, stop=None):
        """{class: body bytes received in [start, stop]}, classes in the order of the weights."""
        total = dict.fromkeys(self.cell.weights, 0.0)
        for user, amount in self.user_bytes(start, stop).items():
            total[self.cell.users[user]] += amount
        return total

    def beside_sum(self, column):
        """Sum of a column of the constant-rate stream's rows: `bytes` of frames, `packets` received, packets `lost`."""
        if self.cell.beside is None:
            raise StatsError('the run recorded no constant-rate stream')
        begun = self.cell.beside['t']
        return float(self.cell.beside[column][(begun >= self.cell.t_start) & (begun < self.cell.t_stop)].sum())

    def with_beside(self):
        """(bytes of the first user by requests, bytes it received from the stream, mean bytes of the other users of its
        class)."""
        received = self.user_bytes()
        first, *_ = self.cell.users
        others = [amount for user, amount in received.items()
                  if user != first and self.cell.users[user] == self.cell.users[first]]
        if not others or not sum(others):
            raise StatsError(f'no other user of {self.cell.users[first]} received anything')
        return received[first], self.beside_sum('bytes'), sum(others) / len(others)

    def payload_bytes(self):
        """Body bytes received by all users."""
        return sum(self.class_bytes().values())

    def ratios(self, start=None, stop=None, classes=None):
        """(ratios, errors) of stats.per_user_ratios among `classes`, all that have users if not given."""
        received = self.class_bytes(start, stop)
        users = {name: self.cell.users_of(name) for name in received}
        shares = {name: received[name] for name in (classes or received) if users[name]}
        return stats.per_user_ratios(shares, users, self.cell.weights)

    def due_shares(self, of_link=False):
        """{(class, whether its users speak HTTP/3): their bytes over their fair share}, in bodies or in
        link_user_bytes(); 1 is exact. The flooded user is excluded. StatsError if a group is empty."""
        cell = self.cell
        received = self._beside_whom(self.link_user_bytes() if of_link else self.user_bytes())
        weights = {user: cell.weights[cell.users[user]] for user in received}
        total, due = sum(received.values()), sum(weights.values())
        if not cell.http3 or not total:
            raise StatsError('nobody speaks HTTP/3' if total else 'no bytes were received')
        groups = {}
        for user, amount in received.items():
            groups.setdefault((cell.users[user], user in cell.http3), []).append(amount / weights[user])
        return {group: sum(each) / len(each) * due / total for group, each in groups.items()}

    def link_user_bytes(self):
        """{user: bytes that the link carried for that user}, with all headers and with packets lost behind the link.
        Bytes that bypassed Squid were counted; the rest of the link is divided in proportion to the bodies through
        Squid."""
        cell = self.cell
        if cell.past is None:
            raise StatsError('the run did not record what came past Squid')
        past = {user: stats.increase(cell.past['t'], cell.past[user], cell.t_start, cell.t_stop) for user in cell.users}
        by_http3 = self._http3_bytes()
        bodies = {user: max(0.0, amount - by_http3.get(user, 0.0)) for user, amount in self.user_bytes().items()}
        rest, read = self.link_bytes() - sum(past.values()), sum(bodies.values())
        return {user: past[user] + (bodies[user] / read * rest if read else 0.0) for user in cell.users}

    def _http3_bytes(self):
        """{user: body bytes received by HTTP/3}. A request reports its bytes when it ends; they are assumed to have
        arrived evenly from its first byte on."""
        cell, requests = self.cell, self.cell.requests
        begun, ended = requests['t_first_byte'], requests['t_end']
        own = (requests['scheme'] == 'h3') & ~np.isnan(begun)
        begun, ended = begun[own], np.maximum(ended[own], begun[own] + 1e-6)
        inside = np.clip(np.minimum(ended, cell.t_stop) - np.maximum(begun, cell.t_start), 0, None) / (ended - begun)
        came, found = requests['bytes'][own] * inside, {}
        for user, amount in zip(requests['user'][own], came):
            found[user] = found.get(user, 0.0) + float(amount)
        return found

    def _beside_whom(self, received):
        """`received` by users, without the first user where a stream is sent to it."""
        received = dict(received)
        if self.cell.beside is not None:
            received.pop(next(iter(self.cell.users)))
        return received

    def others_share(self):
        """Share of C that the link carried for all users except the one to whom a stream was sent."""
        if self.cell.beside is None:
            raise StatsError('nobody was sent a stream')
        return sum(self._beside_whom(self.link_user_bytes()).values()) * 8 / (self.cell.seconds * self.cell.rate_bps)

    def http3_share(self):
        """Share of requests that used HTTP/3, among users who speak it. The protocol is known only once a response
        begins."""
        requests = self.cell.requests
        own = self._begun(requests) & np.isin(requests['user'], list(self.cell.http3))
        own &= ~np.isnan(requests['t_first_byte'])
        if not own.any():
            raise StatsError('nobody who speaks HTTP/3 had an answer')
        return float((requests['scheme'][own] == 'h3').mean())

    def saturated(self):
        """Whether all users are always backlogged, so that throughput reflects the scheduler and not the demand."""
        return self.cell.profile.saturated and not self.paused_classes()

    def paused_classes(self):
        """Whether some phase of the load excludes a class, which makes a ratio over all classes meaningless."""
        return any(len(phase['classes']) < len(self.cell.weights) for phase in self.cell.phases)

    def phases(self):
        """[(label, start, stop, active classes)] of the load's phases, without their settling time and the warm-up of
        the cell. StatsError if a phase is too short to have a measured part."""
        found = []
        for phase in self.cell.phases:
            begin = max(phase['t_start'] + settle_s(phase['t_end'] - phase['t_start']), self.cell.t_start)
            if begin + 1 > phase['t_end']:
                raise StatsError(f"phase '{phase.get('label')}' ends at {phase['t_end']:g} s, less than a second after "
                                 f'its settling time and the warm-up, {begin:g} s')
            found.append((phase.get('label') or '', begin, phase['t_end'], list(phase['classes'])))
        if not found:
            raise StatsError('the load recorded no phases')
        return found

    def phase_ratios(self):
        """[(label, ratios, errors)] for every phase with at least two active classes."""
        return [(label, *self.ratios(start, stop, classes))
                for label, start, stop, classes in self.phases() if len(classes) > 1]

    # --- the ISP's link ----------------------------------------------------------------------------------------------

    def _link(self, column, start=None, stop=None):
        return stats.increase(self.cell.link['t'], self.cell.link[column], *self._interval(start, stop))

    def link_bytes(self, start=None, stop=None):
        """Bytes that left the ISP's queue, with all headers."""
        return self._link('sent_bytes', start, stop)

    def _carried(self):
        carried = self.link_bytes()
        if carried <= 0:
            raise StatsError('the link carried nothing')
        return carried

    def link_bps(self, start, stop):
        """Mean rate at which bytes left the ISP's queue, bit/s."""
        return self.link_bytes(start, stop) * 8 / (stop - start)

    def offered_bps(self, start=None, stop=None):
        """C; its mean where the rate varies."""
        cell = self.cell
        if cell.offered is None:
            return cell.rate_bps
        start, stop = self._interval(start, stop)
        return stats.integral(cell.offered['t'], cell.offered['rate_bps'], start, stop) / (stop - start)

    def utilisation(self, start=None, stop=None):
        """Share of C that the link carried."""
        start, stop = self._interval(start, stop)
        offered = self.offered_bps(start, stop)
        if offered <= 0:
            raise StatsError('the link stood still')
        return stats.utilisation(self.link_bytes(start, stop), stop - start, offered)

    def found_share(self):
        """Mean estimate of the link's rate, as a share of mean C."""
        found = self.cell.found
        if found is None:
            raise StatsError('the rate was not looked for')
        return float(found['rate_bps'][stats.in_interval(found['t'], self.cell.t_start, self.cell.t_stop)].mean()) / \
            self.offered_bps()

    def goodput_share(self):
        """Body bytes that users received over bytes on the link; above 1 when the proxy's cache answered."""
        if self.cell.profile.shared:
            raise StatsError('traffic of no request shared the link')
        return self.payload_bytes() / self._carried()

    def served_share(self):
        """Share of C carried as bodies that Squid served, even where other traffic used the link too."""
        return self.payload_bytes() * 8 / (self.cell.seconds * self.cell.rate_bps)

    @cached_property
    def queue_samples(self):
        """(times, delays in ms, how long each delay held in s) of the ISP's queue."""
        cell = self.cell
        chosen = stats.in_interval(cell.link['t'], cell.t_start, cell.t_stop)
        times = cell.link['t'][chosen]
        backlog = cell.link['backlog_bytes'][chosen]
        if cell.offered is None:
            delays = stats.queue_delay_ms(backlog, cell.rate_bps)
        else:
            delays = stats.waits_ms(times, cell.link['sent_bytes'][chosen], backlog)
        return times, delays, stats.holding_times(times, cell.t_stop)

    def queue_mean_ms(self):
        """Mean delay in the ISP's queue over time, ms."""
        _, delays, held = self.queue_samples
        return stats.weighted_mean(delays, held)

    def queue_p95_ms(self):
        """Delay in the ISP's queue that is not exceeded in 95 % of the time, ms."""
        _, delays, held = self.queue_samples
        return stats.weighted_quantile(delays, held, 0.95)

    def drops(self):
        """Packets that the ISP's queue dropped."""
        return self._link('drops')

    def drop_share(self):
        """Share of the packets arriving at the ISP's queue that it dropped."""
        dropped = self.drops()
        arrived = dropped + self._link('sent_packets')
        if arrived <= 0:
            raise StatsError('no packet came to the link')
        return dropped / arrived

    def drops_per_mb(self):
        """Packets dropped per megabyte (10^6 bytes) carried."""
        return self.drops() * 1e6 / self._carried()

    # --- the gateway -------------------------------------------------------------------------------------------------

    def _squid(self):
        squid = self.cell.squid
        if not squid['rss_kb'].any():
            raise StatsError('the gateway is a router without Squid')
        return squid

    def cpu_seconds(self):
        """CPU seconds (user and system) of the Squid processes."""
        squid = self._squid()
        return stats.increase(squid['t'], squid['cpu_s'], self.cell.t_start, self.cell.t_stop)

    def machine_busy(self):
        """Share of time in which the machine's processors were busy, with any process."""
        host = self.cell.host
        if host is None:
            raise StatsError('the run did not record it')
        return 1 - stats.increase(host['t'], host['idle_s'], self.cell.t_start, self.cell.t_stop) / self.cell.seconds

    def cpu_per_gb(self):
        """CPU seconds per gigabyte (10^9 bytes) of body received."""
        payload = self.payload_bytes()
        if payload <= 0:
            raise StatsError('no bytes were received')
        return self.cpu_seconds() * 1e9 / payload

    def peak_rss_mb(self):
        """Greatest resident memory of the Squid processes, MB (10^6 bytes)."""
        squid = self._squid()
        chosen = stats.in_interval(squid['t'], self.cell.t_start, self.cell.t_stop)
        return float(squid['rss_kb'][chosen].max()) * KB / 1e6

    # --- what users see ----------------------------------------------------------------------------------------------

    def _begun(self, table):
        return (table['t_start'] >= self.cell.t_start) & (table['t_start'] < self.cell.t_stop)

    def sample_of(self, table, chosen=True):
        """Sample of the rows of a table with `t_start`, `t_end` and `outcome` that are `chosen` and began in the
        measured interval. StatsError if there are none."""
        chosen = self._begun(table) & chosen
        if not chosen.any():
            raise StatsError('no such request began in the measured interval')
        cell = self.cell
        block, blocks = stats.block_numbers(table['t_start'][chosen], cell.t_start, cell.t_stop, BLOCK_S)
        latency = table['t_end'][chosen] - table['t_start'][chosen]
        return Sample(latency, table['outcome'][chosen] == 'ok', block, blocks, cell.cut - cell.t_start)

    def _sample(self, name=None, size=None, near=None):
        """Latencies of the requests that began in the interval: of class `name`, of a size class of SIZES, and of
        servers at or below (`near`) or above (not `near`) the median round-trip time; all if not given. Failed requests
        are excluded (see failed_share)."""
        requests = self.cell.requests
        chosen = ~np.isin(requests['outcome'], FAILED)
        if name is not None:
            chosen &= requests['class'] == name
        if size is not None:
            low, high = SIZES[size]
            chosen &= (requests['size'] > low) & (requests['size'] <= high)
        if near is not None and len(chosen):
            chosen &= (requests['rtt_ms'] <= np.median(requests['rtt_ms'])) == near
        return self.sample_of(requests, chosen)

    def _page_sample(self, name=None, http3=False, column=None):
        """Page loads that began in the interval, of class `name` or all; `http3`: only of users who speak it. column:
        the time in another column instead, s; a page without it took longer than it was watched."""
        pages = self.cell.pages
        if pages is None:
            raise StatsError('this workload has no pages')
        chosen = pages['outcome'] != 'error'
        if name is not None:
            chosen &= pages['class'] == name
        if http3:
            chosen &= np.isin(pages['user'], list(self.cell.http3))
        if column is None:
            return self.sample_of(pages, chosen)
        if column not in pages or np.isnan(pages[column]).all():
            raise StatsError(f'no page has {column}')
        known = ~np.isnan(pages[column])
        return self.sample_of(pages | {'t_end': np.where(known, pages['t_start'] + pages[column], pages['t_end']),
                                       'outcome': np.where(known, 'ok', 'unfinished')}, chosen)

    def page_outcomes(self, name):
        """{outcome: page loads of class `name` that began in the interval}."""
        pages = self.cell.pages
        found = pages['outcome'][self._begun(pages) & (pages['class'] == name)]
        return dict(zip(*map(np.ndarray.tolist, np.unique(found, return_counts=True))))

    def kinds(self):
        """{kind of request: share of the body bytes of the requests that began in the interval}, greatest first; the
        parts of pages are one."""
        requests, found = self.cell.requests, {}
        begun = self._begun(requests)
        for kind, size in zip(requests['kind'][begun], requests['bytes'][begun]):
            kind = 'page' if kind in ('document', 'object') else str(kind)
            found[kind] = found.get(kind, 0.0) + float(size)
        total = sum(found.values())
        return {kind: size / total for kind, size in sorted(found.items(), key=lambda item: -item[1])} if total else {}

    def failed_share(self):
        """Share of the requests begun in the interval that were refused or failed."""
        return self._share(*FAILED)

    def unfinished_share(self):
        """Share of the requests begun in the interval that were cut at the end of the run."""
        return self._share('unfinished')

    def _share(self, *outcomes):
        begun = self._begun(self.cell.requests)
        if not begun.any():
            raise StatsError('no request began in the measured interval')
        return float(np.isin(self.cell.requests['outcome'][begun], outcomes).mean())
