# SPDX-License-Identifier: GPL-2.0-or-later
"""What must be there before a trial starts, said in one sentence each if it is not; and what can be done without."""
import importlib.util
import os
import shutil

from . import delay, shaping
from .addresses import users
from .errors import TrialError
from .netns import NetnsFabric
from .world import NO_SQUID

#: Programs and the Debian packages that have them.
PROGRAMS = {'ip': 'iproute2', 'tc': 'iproute2', 'ss': 'iproute2', 'ethtool': 'ethtool', 'iptables': 'iptables',
            'ip6tables': 'iptables', 'nginx': 'nginx', 'dnsmasq': 'dnsmasq-base', 'setpriv': 'util-linux',
            'sysctl': 'procps', 'openssl': 'openssl'}
MODULES = {'aiohttp': 'python3-aiohttp', 'numpy': 'python3-numpy', 'matplotlib': 'python3-matplotlib'}


def check(squid, delayline, distance):
    """Raises TrialError with everything that is missing."""
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
    with NetnsFabric() as fabric:
        host = fabric.host('probe')
        shaping.bottleneck(host, 'lo', 1e6, 10000)
        if delay.choose(distance, fabric, delayline).name == delay.DelayLine.name:
            if not os.path.exists('/dev/net/tun'):
                raise TrialError('no netem in this kernel, and no /dev/net/tun for the delay line instead '
                                 '(modprobe sch_netem, or modprobe tun)')
            if not os.access(delayline, os.X_OK):
                raise TrialError(f'{delayline}: not built; run make install at the top')


def has_htb():
    """Whether this kernel can run the arm with HTB; the reason if not."""
    with NetnsFabric() as fabric:
        try:
            shaping.htb(fabric.host('probe'), 'lo', 1e6, users(['any'], [1]), {'any': 1})
        except TrialError as error:
            return False, str(error)
    return True, ''
