# SPDX-License-Identifier: GPL-2.0-or-later
"""What is wrong with the gateway as a whole and Squid cannot know, worst first. lookout.py finds it for `msfrsctl
watch`, which publishes it; off, on and prove publish what they change. src/satellites/page/overall.cc alone makes of it
the first sentence of status, why and msfrs-page; Squid's metrics have all of it."""
import time
from collections import namedtuple

from . import accesslog
from .errors import CtlError

#: Codes, worst first: those that end service for users, then the others.
CODES = OFF, UNREACHABLE, EDGE, LOG, NAMES, TEST = 'off', 'unreachable', 'edge', 'log', 'names', 'test'
#: Bytes of a file system below which Squid's next buffer of log lines may not fit.
LEAST_FREE = 1 << 16


class Fault(namedtuple('Fault', 'code text')):
    """text: sentences for the administrator, the last of them what to do."""
    __slots__ = ()


def known(site):
    """The faults as published, or looked for now if nobody publishes them."""
    kept = published(site)
    if kept is None:
        from . import lookout       # only here, as it takes half of the time that `why` takes
        kept = [*(lookout.rules(site) if site.system.euid() == 0 and lookout.squid_listens(site) else ()), *log(site)]
    return _sorted([*_others(kept), *off(site), *test(site)])


def published(site):
    """The list in the file, or None."""
    text = site.system.read(site.faults_path)
    return text if text is None else [Fault(code, said) for line in text.splitlines()
                                      for code, tab, said in [line.partition('\t')] if tab and code in CODES]


def publish(site, *faults):
    """Writes the file that msfrs-page reads. Faults of off and prove are added here."""
    every = _sorted([*faults, *off(site), *test(site)])
    text = ''.join(f'{fault.code}\t{" ".join(fault.text.split())}\n' for fault in every)
    if site.system.read(site.faults_path) != text:
        site.system.make_directory(site.faults_path.rpartition('/')[0])
        site.system.write(site.faults_path, text)


def publish_again(site):
    """The same with those that are published, after off or prove has begun or ended."""
    publish(site, *_others(published(site) or ()))


def _others(faults):
    """Without those of off and prove, which are looked for each time."""
    return [fault for fault in faults if fault.code not in (OFF, TEST)]


def _sorted(faults):
    return sorted(dict.fromkeys(faults), key=lambda fault: CODES.index(fault.code))


def off(site):
    stamp = site.system.read(site.off_path)
    if stamp is None:
        return []
    since = f' since {clock(site, float(stamp))}' if stamp.strip().isdigit() else ''
    return [Fault(OFF, f'Off{since} by msfrsctl off: new connections of users go past Squid. To end it: msfrsctl on.')]


def test(site):
    """msfrsctl prove, as long as its process exists."""
    pid, _, since = (site.system.read(site.test_path) or '').strip().partition(' ')
    if not pid.isdigit() or not site.system.exists(f'/proc/{pid}'):
        return []
    return [Fault(TEST, f'A test runs since {clock(site, float(since))}, msfrsctl prove: it turns scheduling off and '
                        f'on by turns.')]


def clock(site, stamp):
    """A time of today as 14:02, otherwise with its day."""
    then, now = time.localtime(stamp), time.localtime(site.system.now())
    return time.strftime('%H:%M' if then[:3] == now[:3] else '%Y-%m-%d %H:%M', then)


def log(site):
    try:
        path = accesslog.log_of(site.conf).path
    except CtlError:
        return []
    free = site.system.free(path)
    if free is None or free >= LEAST_FREE:
        return []
    return [Fault(LOG, f'The file system of {path} is full: requests are served, but not logged. To do: make room '
                       f'there.')]
