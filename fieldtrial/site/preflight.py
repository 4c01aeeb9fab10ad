# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the prerequisites of a trial before it starts, with one sentence for each that is missing; and the optional
ones."""
import contextlib
import importlib.util
import os
import shutil

from ..base.errors import TrialError
from . import delay, fabrics, guest, shaping, sharing
from .addresses import users
from .host import HostError
from .world import NO_SQUID

#: Programs and the Debian packages that contain them.
PROGRAMS = {'ip': 'iproute2', 'tc': 'iproute2', 'ss': 'iproute2', 'ethtool': 'ethtool', 'iptables': 'iptables',
            'ip6tables': 'iptables', 'nginx': 'nginx', 'dnsmasq': 'dnsmasq-base', 'setpriv': 'util-linux',
            'sysctl': 'procps', 'openssl': 'openssl', 'curl': 'curl'}
MODULES = {'aiohttp': 'python3-aiohttp', 'h2': 'python3-h2', 'numpy': 'python3-numpy',
           'matplotlib': 'python3-matplotlib', 'jinja2': 'python3-jinja2'}


def check(options):
    """Raises TrialError that lists everything missing."""
    if options.hosts == fabrics.NAMES[0]:
        _check_machine(options.squid)
        if options.gateways > 1 and not any(map(shutil.which, sharing.STORES)):
            raise TrialError(sharing.NO_STORE)
    with _probe(options.hosts) as host:
        shaping.bottleneck(host, 'lo', 1e6, 10000)
        host.run('tc', 'qdisc', 'del', 'dev', 'lo', 'root')
        if isinstance(delay.choose(options.distance, host, options.delayline), delay.DelayLine):
            _check_delay_line(host, options.delayline)


def _check_machine(squid):
    if os.geteuid() != 0:
        raise TrialError('the trial makes network namespaces and needs root: sudo ./trial')
    os.environ['PATH'] = os.environ.get('PATH', '/usr/bin:/bin') + ':/usr/sbin:/sbin'
    missing = [f'{name}: not found (package {package})' for name, package in PROGRAMS.items() if not shutil.which(name)]
    missing += [f'python3 has no module {name} (package {package})' for name, package in MODULES.items()
                if not importlib.util.find_spec(name)]
    if missing:
        raise TrialError('\n'.join([*missing, 'scripts/install-packages trial installs all of them']))
    if not os.access(squid, os.X_OK):
        raise TrialError(NO_SQUID.format(squid))


@contextlib.contextmanager
def _probe(hosts):
    with fabrics.new(hosts) as fabric:
        for role in fabric.given:
            fabric.host(role)
        host = fabric.host(fabric.probe)
        try:
            yield host
        finally:
            host.run('tc', 'qdisc', 'del', 'dev', 'lo', 'root', check=False)


def _check_delay_line(host, program):
    try:
        host.run('test', '-c', '/dev/net/tun')
    except HostError:
        raise TrialError('no netem in this kernel, and no /dev/net/tun for the delay line instead '
                         '(modprobe sch_netem, or modprobe tun)') from None
    try:
        host.run('test', '-x', program)
    except HostError:
        raise TrialError(f'{program}: not built; run make install at the top') from None


def lacking(arms, hosts):
    """{arm: why} of those of these arms whose queueing discipline neither this kernel has nor a guest could have."""
    with _probe(hosts) as host:
        found = {arm.name: missing for arm in arms if (missing := _missing(arm, host))}
    no_guest = found and (guest.why_not(hosts) or guest.refused())
    return {name: f'{missing}, {no_guest}' for name, missing in found.items()} if no_guest else {}


def takes_guest(arm, hosts):
    """Whether an arm's queueing discipline takes a guest: this kernel lacks it, and there can be one."""
    if arm.qdisc is None or guest.why_not(hosts):
        return False
    with _probe(hosts) as host:
        return _missing(arm, host) is not None


def _missing(arm, host):
    """Why a host's kernel cannot run the queueing discipline of an arm, None if it can, or needs none. It is tried."""
    try:
        if arm.qdisc:
            arm.qdisc(host, 'lo', 1e6, users(['any'], [1]), {'any': 1})
    except TrialError as error:
        return str(error).splitlines()[0].rstrip(':')
    finally:
        host.run('tc', 'qdisc', 'del', 'dev', 'lo', 'root', check=False)
    return None
