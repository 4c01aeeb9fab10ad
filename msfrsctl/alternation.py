# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduling off and on by turns, while users work, and samples of each slice of time.

Off is a link whose limit is never met: the rate in msfrs_link is BEYOND times what it was. Then nothing waits, no
response pauses, and the receive windows of all users together are BEYOND bandwidth-delay products, more than a
provider's queue holds; msfrs-edge delays nothing either. They are not longer, since those of downloads that never end
would reach into the next slice: after one with windows of 16 MB the queue was 80 ms for a whole minute with scheduling,
and 25 ms after one like this, as before it (6 Mbit/s, twelve downloads; 280 ms without scheduling). Squid counts on as
before, by class, and measures the queue at the provider. `msfrs off` would not be a fair opposite: tunnels opened while
it is off stay unscheduled until they end, so most HTTPS of the next slice would escape, and Squid would have neither
classes nor queue to report. Nor would `msfrsctl off`: it takes users out of access.log, while open connections stay.

The change is one of `msfrsctl set` with an end, so the timer takes it back should this program be killed.
"""
import contextlib
import re
import signal

from . import probe
from .comparison import Sample, Slice
from .errors import FAILED, REFUSED, CtlError
from .own import Change, OwnFile, path_of
from .system import RECEIVED
from .units import MOST, canonical, rate_of

#: Windows of so many times C (R + q*) are used up in BEYOND (R + q*): in 3 s with round trips of 0.1 s, within SETTLE up
#: to 0.3 s. With half of it a provider with a second of buffer would be shown with a shorter queue.
BEYOND = 30
#: Seconds of a slice: two in succession are one minute, for which Squid remembers the RTT of an empty queue.
SLICE = 30.0
#: Seconds at its beginning that are left out: a queue of several seconds at the provider drains, or builds up.
SETTLE = 10.0
#: Seconds between two samples. A report costs Squid about a millisecond.
STEP = 1.0
#: Seconds after which a change that nobody has taken back ends: two slices, and two switches.
LASTS = 2 * SLICE + 2 * probe.START
ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
#: Options of msfrs_link that are set to the rate of the slices without scheduling, in this order.
OPTIONS = {'rate': ('rate',), 'auto': ('max', 'min')}


class Switch:
    """Scheduling of the running Squid; `with` restores it at the end, whatever happens. A signal that ends programs is
    noted meanwhile and raises KeyboardInterrupt only where nothing is half done."""

    def __init__(self, site):
        self._site, self._on, self._path, self._ended = site, True, path_of(site), False
        line = site.conf.last('msfrs_link')
        self._options = OPTIONS['auto' if line and line.option('rate') == 'auto' else 'rate']
        #: bit/s: the greatest with scheduling, and that without.
        self._bound = rate_of(line.option(self._options[0])) if line else MOST
        self._beyond = min(BEYOND * self._bound, MOST)
        taken = [change for change in OwnFile(site, self._path).changes().values()
                 if change.what in ('rate', *self._options)]
        if taken:
            raise CtlError(f'msfrsctl set has changed the {taken[0].what}: take that back first, with msfrsctl set '
                           f'--undo {taken[0].id}')
        self._edited(False)     # raises CtlError if the lines cannot be changed, before anything is

    def __enter__(self):
        self._handlers = {number: signal.signal(number, self._end) for number in ENDING}
        return self

    def __exit__(self, _kind, first, _trace):
        try:
            self.restore()
        except CtlError as problem:
            said = dict.fromkeys(str(error) for error in (first, problem) if isinstance(error, CtlError))
            raise CtlError(f'{"; then: ".join(said)}. Whether scheduling is as before is not known: see msfrsctl '
                           f'status, and msfrsctl set, which lists and undoes changes', problem.code) from None
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def restore(self):
        if self._on is not True:
            self._change(True)

    def _end(self, _number, _frame):
        self._ended = True

    def wait(self, seconds):
        """Raises KeyboardInterrupt after a signal."""
        until = self._site.system.monotonic() + seconds
        while (left := until - self._site.system.monotonic()) > 0 or self._ended:
            if self._ended:
                raise KeyboardInterrupt
            self._site.system.sleep(min(left, probe.STEP))

    def slice(self, on, ping):
        """A Slice of SLICE seconds. ping: a host, or None. Raises CtlError and KeyboardInterrupt."""
        clock, site = self._site.system.monotonic, self._site
        if on != self._on:
            self._change(on)
        ends = clock() + SLICE
        self.wait(SETTLE)
        begin, samples = site.system.now(), []
        while (left := ends - clock()) > 0:
            next_ = clock() + min(left, STEP)
            samples.append(_sample(site, ping))
            self.wait(next_ - clock())
        return Slice(on, begin, site.system.now(), samples)

    def _change(self, on):
        site, self._on = self._site, None       # unknown until Squid confirms it
        with site.system.lock(site.conf.directory):
            if note := self._edited(on).apply():
                raise CtlError(note, FAILED)
        until = site.system.monotonic() + probe.START
        while not self._is(on):
            if site.system.monotonic() >= until:
                raise CtlError(f'Squid has not turned scheduling {"on" if on else "off"} after {probe.START:g} s: see '
                               f'cache.log', FAILED)
            site.system.sleep(probe.STEP)
        self._on = on

    def _edited(self, on):
        """The file with scheduling on or off, not yet written."""
        own = OwnFile(self._site, self._path)
        ours = [change for change in own.latest_first() if change.what in self._options]
        if any(change.now != canonical(self._beyond) for change in ours):
            raise CtlError('somebody has changed the rate meanwhile, and that stays', REFUSED)
        for change in ours:
            own.undo(change)
        for option in () if on else self._options:
            own.set_option('msfrs_link', None, option, canonical(self._beyond), Change(
                own.new_id(), option, '', '', canonical(self._beyond), self._site.system.now() + LASTS))
        return own

    def _is(self, on):
        with contextlib.suppress(CtlError):     # it may be reading its configuration
            return all((report['link']['rate'] > self._bound) != on for report in self._site.manager.reports())
        return False


def _sample(site, ping):
    reports = site.manager.reports()
    classes = {}
    for row in (row for report in reports for row in report['classes']):
        classes[row['name']] = classes.get(row['name'], 0) + row['bytes']
    link, at = reports[0]['link'], site.system.monotonic()
    received = link['metered'] and site.system.read(RECEIVED.format(link['interface']))
    # Without the interface's counter, as msfrs itself counts then.
    received = int(received) if received else sum(classes.values()) * (1 + link['overhead'])
    return Sample(at, received, classes, reports[0]['window']['queue'], round_trip(site, ping) if ping else None)


def round_trip(site, host):
    """Seconds of one ping, or None."""
    done = site.system.run('ping', '-n', '-c', '1', '-W', '2', '--', host)
    said = re.search(r'\btime=([\d.]+) ms', done.out)
    return float(said[1]) / 1000 if said else None
