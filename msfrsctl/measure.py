# SPDX-License-Identifier: GPL-2.0-or-later
"""The rate of the downlink, measured by a bounded download from a server that the administrator names."""
import re
from collections import namedtuple

from . import text
from .errors import FAILED, WRONG, CtlError
from .system import RECEIVED
from .units import LEAST, canonical

URL = re.compile(r'https?://([^\s/:@?#]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/\S*)?')
#: One connection fills a link only if its window does; several share the loss of one.
CONNECTIONS = 4
#: Seconds of the download, and of its beginning that do not count: slow start by satellite takes five round trips of
#: 600 ms.
LASTS, SLOW_START = 10.0, 3.0
#: Seconds that must remain behind slow start.
ENOUGH = 2.0
#: Bytes after which the download ends early: 1 Gbit/s has 8 s.
MOST = 1_000_000_000
#: Bytes of the smallest file: a smaller one measures round trips instead of the link.
FILE = 1_000_000
#: Part of the measured rate that is proposed, so that the queue is at the gateway and not at the provider.
PART = 0.95
#: A second with less than this part of the best second means that the rate varies.
STEADY = 0.6
#: With rate auto: the estimate begins at a quarter of the slowest second, as another hour may be worse, and may find
#: twice the best.
WORSE, BETTER = 0.25, 2


class Line(namedtuple('Line', 'rate least most seconds bytes')):
    """rate: bit/s as the interface counts; least, most: those of its slowest and fastest second; seconds, bytes: those
    that were measured."""
    __slots__ = ()

    @property
    def varies(self):
        return self.least < STEADY * self.most

    def proposal(self):
        """{name: answer} of the rate, and of the bounds in case the answer is auto."""
        return {'rate': 'auto' if self.varies else _round(PART * self.rate),
                'min': _round(max(WORSE * self.least, LEAST)), 'max': _round(BETTER * self.most)}

    def __str__(self):
        varies = f', from {text.rate(self.least)} to {text.rate(self.most)} in single seconds' if self.varies else ''
        return f'{text.rate(self.rate)} ({text.amount(self.bytes)} in {self.seconds:.0f} s, {CONNECTIONS} ' \
               f'connections{varies})'


def _round(bits):
    """Three digits are more than a measurement has."""
    return canonical(float(f'{bits:.3g}'))


def is_url(said):
    return said.strip().lower().startswith(('http://', 'https://'))


def line(system, interface, url):
    """A Line, after at most LASTS seconds. Raises CtlError."""
    url = url.strip()
    if not URL.fullmatch(url):
        raise CtlError(f"'{url}' must be a large file by http or https, such as http://server.example/100MB.bin", WRONG)
    path = RECEIVED.format(interface)
    if system.read(path) is None:
        raise CtlError(f"interface '{interface}' is not there, so nothing can be measured through it; see ip link",
                       WRONG)
    system.say(f'measuring: {CONNECTIONS} connections to {url} by {interface}, for {LASTS:.0f} s or '
               f'{text.amount(MOST)} at most')
    return of_samples(system.download(url, interface, path))


def of_samples(samples):
    """A Line of [(seconds, bytes that the interface has received)] of a whole download. Raises CtlError if that was too
    short."""
    begun = samples[0][0] + SLOW_START
    counted = [sample for sample in samples if sample[0] >= begun]
    if not counted or counted[-1][0] - counted[0][0] < ENOUGH:
        needed = SLOW_START + ENOUGH
        raise CtlError(f'the download ended after {samples[-1][0] - samples[0][0]:.1f} s, and {needed:.0f} s are '
                       f'needed: the link has more than {text.rate(8 * MOST / needed)}, or the server ends '
                       f'connections; give the rate yourself', FAILED)
    seconds, first = [], counted[0]
    for sample in counted[1:]:
        if sample[0] - first[0] >= 1:
            seconds.append((sample[1] - first[1]) * 8 / (sample[0] - first[0]))
            first = sample
    took, came = (last - at for last, at in zip(counted[-1], counted[0]))
    if came * 8 / took < LEAST:
        raise CtlError(f'{came} bytes came in {took:.0f} s: the server sends nothing; try another', FAILED)
    return Line(came * 8 / took, min(seconds), max(seconds), took, came)
