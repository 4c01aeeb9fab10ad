# SPDX-License-Identifier: GPL-2.0-or-later
"""Records other than the requests: the link, Squid's processor time and memory, and the window.

All rows begin with `t`, seconds since t0 (CLOCK_MONOTONIC), the same t0 as the load generator's.
"""
import collections
import csv
import http.client
import os
import re
import time

from .background import Background
from .netlink import ReceivedBytes
from .processes import TICKS, fetch
from .shaping import ETHERNET
from .world import FORWARD_PORT, WAN

#: One sample of the window history in the mgr:msfrs report:
#: `    - {ago: 0.4, outstanding: 7, limit: 7.31, utilisation: 0.9812, full: true}`
#: Changes of an estimated rate have the same form with other names.
SAMPLE = re.compile(r'^\s*-\s*\{(ago: [^,}]*, outstanding:[^}]*)\}', re.MULTILINE)
PAIR = re.compile(r'(\w+): ([^,]+)')
#: The rate of the link in such a report, bit/s.
RATE = re.compile(r'^link:\n  rate: (\d+)$', re.MULTILINE)
#: Samples of two reports that are closer than this are identical: `ago` is rounded to 0.1 s.
SAME_S = 0.3
#: The chain that counts traffic to users that bypasses Squid; for each family the tool and the user's address field.
PAST_CHAIN = 'TRIAL_PAST'
PAST_TOOLS = ('iptables', 'v4'), ('ip6tables', 'v6')
#: A counting rule in its output: packets, bytes, comment.
COUNTED = re.compile(r'^ *(\d+) +(\d+) .*/\* (\S+) \*/', re.MULTILINE)


class Meter(Background):
    """Writes a table, one row every `period` seconds."""

    header = ()
    period = 1.0

    def __init__(self, path, t0):
        super().__init__(t0)
        self._file = open(path, 'w', newline='', encoding='ascii')
        self._csv = csv.writer(self._file, lineterminator='\n')
        self._csv.writerow(self.header)

    def __exit__(self, *_):
        super().__exit__()
        self._file.close()

    def _work(self):
        # Counted from t0, not from the last row, so that a late row does not delay all later ones.
        number = 0
        while not self._until(number * self.period):
            self.sample()
            number = max(number + 1, int((time.monotonic() - self._t0) / self.period))
        self.sample()

    def row(self, *values):
        self._csv.writerow((f'{time.monotonic() - self._t0:.3f}', *values))

    def sample(self):
        raise NotImplementedError


class LinkMeter(Meter):
    """rx_bytes: bytes received by the outside interfaces of all gateways. The rest: the ISP's queue towards them."""

    header = ('t', 'rx_bytes', 'backlog_bytes', 'drops', 'sent_bytes', 'sent_packets')
    period = 0.1

    def __init__(self, path, t0, world):
        self._received = [ReceivedBytes(gateway, WAN) for gateway in world.gateways]
        self._queue = world.bottleneck.reader()
        self._start = self._read()
        super().__init__(path, t0)

    def _read(self):
        return sum(each.read() for each in self._received), self._queue.read()

    def sample(self):
        received, stats = self._read()
        start_received, start = self._start
        self.row(received - start_received, stats.backlog_bytes, stats.drops - start.drops,
                 stats.sent_bytes - start.sent_bytes, stats.sent_packets - start.sent_packets)

    def __exit__(self, *args):
        super().__exit__(*args)
        for each in (*self._received, self._queue):
            each.close()


class PastMeter(Meter):
    """Bytes of frames for each user, by name, that are forwarded instead of received by Squid; counted before the
    gateway delays or drops any of them."""

    def __init__(self, path, t0, world):
        self.header = ('t', *(user.name for user in world.users))
        self._gateways = list(world.gateways)
        for gateway in self._gateways:
            for tool, at in PAST_TOOLS:
                gateway.run(tool, '-t', 'mangle', '-N', PAST_CHAIN)
                gateway.run(tool, '-t', 'mangle', '-I', 'FORWARD', '-i', WAN, '-j', PAST_CHAIN)
                for user in world.users:
                    gateway.run(tool, '-t', 'mangle', '-A', PAST_CHAIN, '-d', getattr(user, at),
                                '-m', 'comment', '--comment', user.name)
        super().__init__(path, t0)

    def sample(self):
        listings = [gateway.run(tool, '-t', 'mangle', '-nvxL', PAST_CHAIN)
                    for gateway in self._gateways for tool, _ in PAST_TOOLS]
        found = past_bytes(listings)
        self.row(*(found.get(name, 0) for name in self.header[1:]))


def past_bytes(listings):
    """{comment: bytes of frames} counted by the rules with a comment in the output of `iptables -nvxL`."""
    found = collections.Counter()
    for listing in listings:
        for packets, octets, name in COUNTED.findall(listing):
            found[name] += int(octets) + ETHERNET * int(packets)
    return dict(found)


class SquidMeter(Meter):
    """cpu_s: user and kernel time of all Squids since their start, s. rss_kb: their resident memory."""

    header = ('t', 'cpu_s', 'rss_kb')

    def __init__(self, path, t0, squids):
        self._squids = squids
        super().__init__(path, t0)

    def sample(self):
        usages = [squid.usage() for squid in self._squids]
        if all(usages):
            cpu_s, rss_kb = map(sum, zip(*usages)) if usages else (0.0, 0)
            self.row(f'{cpu_s:.2f}', rss_kb)


class HostMeter(Meter):
    """Times of the machine since its start, s, as means over its processors: idle_s, idle; steal_s, taken by other
    machines on the same host. pressure_s: time in which some task waited for a processor. And the times for which the
    cell's processes on the data path waited for one: Squid, servers, load generators. A value that the kernel does not
    provide has no column."""

    def __init__(self, path, t0, daemons):
        """daemons: {name of their group: [Daemon]}."""
        self._daemons = daemons if os.path.exists('/proc/self/schedstat') else {}
        self._pressure = [] if pressure_seconds() is None else [pressure_seconds]
        self.header = ('t', 'idle_s', 'steal_s', *('pressure_s' for _ in self._pressure),
                       *(f'{name}_wait_s' for name in self._daemons))
        super().__init__(path, t0)

    def sample(self):
        waited = (sum(each.waited() for each in daemons) for daemons in self._daemons.values())
        self.row(*(f'{each:.3f}' for each in (*processor_seconds(), *(ask() for ask in self._pressure), *waited)))


def processor_seconds():
    """(idle_s, steal_s), see HostMeter."""
    with open('/proc/stat', encoding='ascii') as file:
        ticks = list(map(int, file.readline().split()[1:]))
    return tuple(each / TICKS / os.cpu_count() for each in (sum(ticks[3:5]), ticks[7]))


def pressure_seconds():
    """See HostMeter; None if the kernel does not provide it."""
    try:
        with open('/proc/pressure/cpu', encoding='ascii') as file:
            return int(file.readline().rpartition('=')[2]) / 1e6
    except OSError:     # no such file, or disabled
        return None


class WindowMeter(Meter):
    """W, W+ and U of every interval, from the history in the cache manager's report. The report is fetched rarely, so
    that its cost to Squid is negligible; each sample is recorded once."""

    header = ('t', 'w', 'wplus', 'u', 'full')
    period = 30.0

    def __init__(self, path, t0, world):
        self._world = world
        self._latest = float('-inf')
        self.report = ''       #: the last whole report
        super().__init__(path, t0)

    def sample(self):
        asked = time.monotonic()
        try:
            self.report = manager_report(self._world, 'msfrs')
        except (OSError, http.client.HTTPException):
            return   # Squid may be busy; the next report has these samples, too
        for sample in window_history(self.report):
            at = asked - self._t0 - sample['ago']
            if at > self._latest + SAME_S:
                self._latest = at
                self._csv.writerow((f'{at:.1f}', f'{sample["outstanding"]:g}', f'{sample["limit"]:g}',
                                    f'{sample["utilisation"]:g}', f'{sample["full"]:g}'))


class FoundMeter(Meter):
    """The estimated rate of a link."""

    header = ('t', 'rate_bps')

    def __init__(self, path, t0, world):
        self._world = world
        super().__init__(path, t0)

    def sample(self):
        try:
            found = RATE.search(manager_report(self._world, 'msfrs'))
        except (OSError, http.client.HTTPException):
            return
        if found:
            self.row(found[1])


def window_history(report):
    """The samples of `history:` in a report of mgr:msfrs, oldest first, as dicts of numbers: ago (seconds before the
    report), outstanding (W), limit (W+), utilisation (U, share of the rate), full (0 to 1)."""
    return [{name: float({'true': 1, 'false': 0}.get(value, value)) for name, value in PAIR.findall(match[1])}
            for match in SAMPLE.finditer(report)]


def tcp_counters(host, before=None):
    """The nonzero TCP counters of a host's kernel since the host was made, or relative to `before`: {name in nstat:
    count}."""
    found = {}
    lines = []
    for name in ('snmp', 'netstat'):
        with host.open(f'/proc/net/{name}') as file:
            lines += file.read().splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        group, names = names.split(':')
        if group in ('Tcp', 'TcpExt'):
            found.update((group + name, int(value)) for name, value in zip(names.split(), values.split()[1:]))
    grown = {name: value - (before or {}).get(name, 0) for name, value in found.items()}
    return {name: value for name, value in grown.items() if value}


def manager_report(world, action, timeout=5.0):
    """The text of a cache manager report. Raises OSError or HTTPException if Squid does not return it."""
    status, body, _ = fetch(world.gateway, ('127.0.0.1', FORWARD_PORT), f'/squid-internal-mgr/{action}',
                            timeout=timeout)
    if status != 200:
        raise http.client.HTTPException(f'cache manager: {action}: status {status}')
    return body.decode(errors='replace')
