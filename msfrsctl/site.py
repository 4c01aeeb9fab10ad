# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the files of this gateway are, looked up on first use."""
import contextlib
import functools
import os
import re

from .accesslog import log_of
from .errors import CtlError
from .manager import Manager, address_of, port_of
from .squidconf import SquidConf

#: Debian's paths, used if those below the prefix do not exist.
DEBIAN_CONF, DEBIAN_SQUID, DEBIAN_SHARE = '/etc/squid/squid.conf', '/usr/sbin/squid', '/usr/share/msfrs'
DEBIAN_EDGE, DEBIAN_SYN = '/usr/sbin/msfrs-edge', '/usr/sbin/msfrs-syn'
#: The program that explains for `msfrsctl why` (docs/user/page.md): below the prefix, and Debian's path.
WHY, DEBIAN_WHY = 'libexec/msfrs/msfrs-why', '/usr/libexec/msfrs/msfrs-why'
#: Where our other programs look for their configuration, and where msfrsctl keeps its state.
ETC, STATE = '/etc/msfrs', '/var/lib/msfrs'
#: Run-time directory of msfrs-edge with its control socket; --state moves this as well.
RUN = '/run/msfrs-edge'
#: Where msfrsctl says what is wrong, until the next start of the machine.
FAULTS = '/run/msfrsctl'
#: Sysctls that enable forwarding at boot, whether or not Squid runs.
FORWARDING = '/etc/sysctl.d/60-msfrs.conf'


def means(name, interface):
    """Whether a name in msfrs-iptables' configuration means an interface; ppp+ means ppp0, ppp1 and so on."""
    return interface.startswith(name[:-1]) if name.endswith('+') else interface == name


class Site:
    """options: squid_conf, squid, manager, etc, state, each None or as given; prefix: of the build."""

    def __init__(self, options, system, prefix):
        self.system = system
        self.prefix = prefix
        self._options = options
        etc = options.etc or ETC
        self.interception_conf = f'{etc}/iptables.conf'
        self.edge_conf = f'{etc}/edge.conf'
        self.edge_iptables_conf = f'{etc}/edge-iptables.conf'
        self.page_conf = f'{etc}/page.conf'
        self.journal_path = f'{options.state or STATE}/setup.json'

        self.run = options.state or RUN
        #: Exists while `msfrsctl off` lasts; the unit msfrs-iptables does not start then.
        self.off_path = f'{etc}/off'
        #: What `msfrsctl watch` has found (faults.py), and the process of `msfrsctl prove`.
        state = options.state or FAULTS
        self.faults_path, self.test_path = f'{state}/faults', f'{state}/test'

    @functools.cached_property
    def conf_path(self):
        return self._options.squid_conf or self._first(f'{self.prefix}/etc/squid.conf', DEBIAN_CONF)

    @functools.cached_property
    def squid(self):
        return self._options.squid or self._first(f'{self.prefix}/sbin/squid', DEBIAN_SQUID)

    def page_setting(self, keyword):
        """The value of the first line with a keyword in msfrs-page's configuration, or None."""
        said = re.search(rf'^\s*{keyword}\s+(\S+)', self.system.read(self.page_conf) or '', re.MULTILINE)
        return said and said[1]

    @functools.cached_property
    def conf(self):
        return SquidConf(self.system, self.conf_path)

    @functools.cached_property
    def manager(self):
        address = self._options.manager
        return Manager(self.system, address_of(address, '--manager') if address else port_of(self.conf))

    @functools.cached_property
    def reports(self):
        """mgr:msfrs, queried once."""
        return self.manager.reports()

    @property
    def why(self):
        return self._first(f'{self.prefix}/{WHY}', DEBIAN_WHY)

    @functools.cached_property
    def share(self):
        return self._first(f'{self.prefix}/share/msfrs', DEBIAN_SHARE)

    @property
    def iptables_script(self):
        """The script, or None."""
        path = f'{self.share}/iptables/msfrs-iptables'
        return path if self.system.exists(path) else None

    @property
    def edge_script(self):
        return f'{self.share}/iptables/msfrs-edge-iptables'

    @functools.cached_property
    def edge(self):
        return self._first(f'{self.prefix}/sbin/msfrs-edge', DEBIAN_EDGE)

    @property
    def syn(self):
        """The program, or None."""
        path = self._first(f'{self.prefix}/sbin/msfrs-syn', DEBIAN_SYN)
        return path if self.system.exists(path) else None

    def need_edge(self):
        for path in (self.edge, self.edge_script):
            if not self.system.exists(path):
                raise CtlError(f'no program {path}, and without it whatever is not TCP to port 80 or 443 escapes the '
                               f'weights: install the package msfrs-edge, or leave it out with --edge no')

    @functools.cached_property
    def segment(self):
        """The name of the shared memory in which the parties of Squid's link exchange their state."""
        said = re.search(r'^Service Name: (\S+)', self.system.run(self.squid, '-v').out, re.MULTILINE)
        return f'{said[1] if said else "squid"}-msfrs_ledger.shm'

    @property
    def squid_user(self):
        return self.conf.value('cache_effective_user', 'proxy') if self.system.exists(self.conf_path) else 'proxy'

    @property
    def squid_group(self):
        return self.conf.value('cache_effective_group', self.squid_user) if self.system.exists(self.conf_path) else \
            self.squid_user

    def log_directory(self):
        """Directory for a log of ours: that of the existing logs, so that they are rotated together."""
        if self.system.exists(self.conf_path):
            with contextlib.suppress(CtlError):
                return os.path.dirname(log_of(self.conf).path)
        return self._first('/var/log/squid', '/var/log/msfrs', f'{self.prefix}/var/logs')

    def look_again(self):
        for name in ('conf', 'manager', 'reports', 'interception'):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def interception(self):
        """Options of msfrs-iptables from its configuration file."""
        text = self.system.read(self.interception_conf) or ''
        lines = (line.partition('#')[0].partition('=') for line in text.splitlines())
        return {key.strip(): value.strip() for key, _, value in lines if value.strip()}

    @property
    def inside(self):
        """The users' interfaces, by msfrs-iptables' configuration; of those named by ppp+, the present ones."""
        names = self.interception.get('inside', '').replace(',', ' ').split()
        links = self.system.ip('link', 'show') if any(name.endswith('+') for name in names) else []
        return [each for name in names for each in
                ([link['ifname'] for link in links if means(name, link['ifname'])] if name.endswith('+') else [name])]

    @functools.cached_property
    def squid_revision(self):
        """The revision of Debian's package that Squid was built from, as squid-patches/build recorded it or as the
        installed package states; or None."""
        said = self.system.read(f'{self.share}/squid-revision')
        if said is None:
            done = self.system.run('dpkg-query', '-W', '-f', '${Version}', 'squid-msfrs')
            said = done.out if done else ''
        match = re.match(r'[0-9][0-9A-Za-z.+~-]*', said)
        return match[0] if match else None

    def need_squid(self):
        if not self.system.exists(self.squid):
            raise CtlError(f'no program {self.squid}; say where Squid is with --squid PROGRAM')

    def control(self, command):
        """Runs `squid -k COMMAND` and returns the result. A CtlError if the program does not exist."""
        self.need_squid()
        return self.system.run(self.squid, '-f', self.conf_path, '-k', command)

    def _first(self, *paths):
        return next((path for path in paths if self.system.exists(path)), paths[-1])
