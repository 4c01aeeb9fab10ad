# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts that are containers, and the cables between them; the same interface for scenarios as `netns`.

Containers are made when the project is started (docker/compose.yaml). Each runs an `agent`, which carries out requests
that it receives on a unix socket in a shared directory. A cable is a VXLAN between two containers on the network that
Docker gave both. So any number of cables can have names and addresses chosen by the scenario, and Docker's rules for
internal networks, which drop packets without a container's own address, see only the outer packets.

Nothing here needs privileges: privileged operations are done by the agents, with the rights of their containers.
"""
import contextlib
import itertools
import ipaddress
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from ..base.errors import TrialError
from . import agent, host, messages
from .host import HostError
from .netns import whole_packets
from .shaping import ETHERNET

#: For messages: the file to change.
COMPOSE = 'docker/compose.yaml'
VXLAN_PORT = 4789
#: MTU of an Ethernet cable, and VXLAN's overhead for each frame.
MTU, OUTER = 1500, 50
START_S = 30.0
GONE = 'the container of {} has gone'


class Host(host.Host):
    """A container. `role` is that of its agent."""

    def _asked(self, message, timeout=None):
        """(the agent's answer to a request, files that came with it)."""
        answer, files, connection = self.begin(message, timeout=timeout)
        connection.close()
        return answer, files

    def begin(self, message, files=(), timeout=None):
        """Sends a request to the agent: (answer, files, connection still open)."""
        try:
            connection = agent.ask(self.role, message, files, timeout)
            answer, files = messages.receive(connection)
        except socket.timeout:
            raise HostError(f'{self.role}: no answer within {timeout:g} s') from None
        except OSError:
            answer = None
        if answer is None:
            raise HostError(GONE.format(self.role))
        return answer, files, connection

    def run(self, *argv, input=None, timeout=30.0, check=True):
        argv = [str(word) for word in argv]
        answer, _ = self._asked({'do': 'run', 'argv': argv, 'input': input, 'timeout': timeout}, timeout + 10.0)
        if 'missing' in answer:
            raise HostError(f'{argv[0]}: not found in the container of {self.role}; build the images again')
        if 'errno' in answer:
            raise HostError(f'{argv[0]}: {answer["said"]}')
        if 'late' in answer:
            raise HostError(f'no end after {timeout:g} s: {" ".join(argv)}')
        if check and answer['code']:
            raise host.failed(argv, answer['code'], answer['stdout'], answer['stderr'])
        return answer['stdout']

    def popen(self, argv, *, stdout, stderr, cwd=None):
        return Process(self, [str(word) for word in argv], stdout, stderr, cwd and str(cwd))

    def open(self, path):
        answer, files = self._asked({'do': 'open', 'path': path})
        if not files:
            raise OSError(answer['errno'], os.strerror(answer['errno']), path)
        return open(files[0], encoding='ascii')

    def socket(self, family, kind, protocol=0, *, source=None, peer=None, timeout=None):
        answer, files = self._asked({'do': 'socket', 'family': family, 'kind': kind, 'protocol': protocol,
                                     'source': source, 'peer': peer, 'timeout': timeout})
        if not files:
            if answer['errno'] is None:
                raise socket.timeout(answer['said'])
            raise OSError(answer['errno'], os.strerror(answer['errno']))
        made = socket.socket(fileno=files[0])
        made.settimeout(timeout)
        return made

    def set_kernel(self, settings):
        """See host.Host. Only verifies the settings, since they are set when the container is created."""
        for setting in settings:
            name, _, wanted = setting.partition('=')
            try:
                with self.open('/proc/sys/' + name.replace('.', '/')) as file:
                    found = file.read().split()
            except OSError as error:
                raise TrialError(f'{self.role}: sysctl {name}: {error.strerror}') from None
            if found != wanted.split():
                raise TrialError(f'{self.role}: sysctl {name} is {" ".join(found)} and must be {wanted}; it is set '
                                 f'under `sysctls` in {COMPOSE}')

    def networks(self):
        """{network attached by Docker: (its interface, its address)}."""
        found = {}
        for link in json.loads(self.run('ip', '-j', '-4', 'addr')):
            for address in link['addr_info']:
                whole = ipaddress.ip_interface(f'{address["local"]}/{address["prefixlen"]}')
                if not whole.is_loopback:
                    found[whole.network] = link['ifname'], str(whole.ip)
        return found

    def reset(self):
        """Removes the remains of an earlier scenario: cables, routes, and the kernel's TCP metrics."""
        for link in json.loads(self.run('ip', '-j', '-d', 'link')):
            if link.get('linkinfo', {}).get('info_kind') in ('vxlan', 'tun', 'bridge'):
                self.run('ip', 'link', 'del', link['ifname'], check=False)
        for family in ('-4', '-6'):
            for rule in json.loads(self.run('ip', family, '-j', 'rule')):
                if rule['priority'] not in (0, 32766, 32767):
                    self.run('ip', family, 'rule', 'del', 'pref', rule['priority'])
            # Docker's default route: no traffic may leave the scenario.
            self.run('ip', family, 'route', 'flush', 'exact', 'default', check=False)
        self.run('ip', 'tcp_metrics', 'flush')


class Process:
    """A process in a container, with the interface of subprocess.Popen."""

    def __init__(self, where, argv, stdout, stderr, cwd):
        self._where, self._code = where, None
        self.stdout = None
        write = None
        if stdout == subprocess.PIPE:
            read, write = os.pipe()
            self.stdout = open(read, 'rb')
        try:
            answer, _, self._connection = where.begin({'do': 'start', 'argv': argv, 'cwd': cwd},
                                                     [stdout.fileno() if write is None else write, stderr.fileno()])
        finally:
            if write is not None:
                os.close(write)
        if 'errno' in answer:
            raise OSError(answer['errno'], os.strerror(answer['errno']), argv[0])
        self.pid = answer['pid']   #: in the container's namespace

    def poll(self):
        """Exit code (negative: the signal), None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._code

    def wait(self, timeout=None):
        """Waits for the process to end; its exit code. Raises subprocess.TimeoutExpired."""
        if self._code is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired('process', timeout)
            try:
                answer, _ = messages.receive(self._connection)
            except OSError:
                answer = None
            self._connection.close()
            if answer is None:   # the agent is gone, too
                self._code = -signal.SIGKILL
                raise TrialError(GONE.format(self._where.role))
            self._code = answer['code']
        return self._code

    def send_signal(self, signum):
        """Sends a signal if the process still runs."""
        with contextlib.suppress(OSError):
            messages.send(self._connection, {'signal': int(signum)})

    def kill(self):
        self.send_signal(signal.SIGKILL)


class ContainerFabric(contextlib.AbstractContextManager):
    """The containers of the project as hosts. One scenario at a time: it begins and ends by resetting them."""

    places = ('domestic', 'overseas')   #: see NetnsFabric
    names = 'names'
    probe = 'isp'
    uncounted = ETHERNET   #: not counted by a VXLAN
    lasting = True

    def __init__(self):
        self._hosts = []
        self._number = itertools.count(1)
        #: See NetnsFabric: one for each container of users; at least one, so that a wait for them can end.
        self.groups = agent.group_roles('users') or ('users-1',)

    @property
    def given(self):
        return (*self.groups, 'gw', 'isp', self.names, *self.places)

    def __exit__(self, *_):
        self.close()

    def host(self, role):
        """The container with this role, reset to its initial state. Raises TrialError if it does not run."""
        made, end = Host(role, role), time.monotonic() + START_S
        while True:
            try:
                agent.ask(role, {'do': 'check'}).close()
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise TrialError(f'the container of {role} does not answer ({agent.path_of(role)}: '
                                     f'{error.strerror}); `docker compose ps` shows what became of it') from None
            time.sleep(0.2)
        try:
            made.reset()
        except HostError as error:
            raise TrialError(f'{role}: its container may not set up its network; it takes the capability NET_ADMIN '
                             f'(cap_add in {COMPOSE}):\n  {error}') from None
        self._hosts.append(made)
        return made

    def wire(self, a, name_a, b, name_b):
        there = b.networks()
        shared = next(((*ends, *there[network]) for network, ends in a.networks().items() if network in there), None)
        if not shared:
            raise TrialError(f'{a.role} and {b.role} have no network of Docker in common ({COMPOSE})')
        device_a, address_a, device_b, address_b = shared
        number = next(self._number)
        for host_, name, device, local, remote in ((a, name_a, device_a, address_a, address_b),
                                                   (b, name_b, device_b, address_b, address_a)):
            try:
                host_.run('ip', 'link', 'add', name, 'mtu', MTU, 'type', 'vxlan', 'id', number, 'local', local,
                          'remote', remote, 'dev', device, 'dstport', VXLAN_PORT)
            except HostError as error:
                raise TrialError(f'{host_.role}: no cable to the next host; it takes the capability NET_ADMIN, the '
                                 f'kernel module vxlan, and a network with an MTU of {MTU + OUTER} ({COMPOSE}):\n  '
                                 f'{error}') from None
            whole_packets(host_, name)
            host_.run('ip', 'link', 'set', name, 'up')

    @contextlib.contextmanager
    def directory(self):
        path = tempfile.mkdtemp(prefix='world-', dir=agent.DIRECTORY)
        os.chmod(path, 0o755)
        try:
            yield path
        finally:
            for each in self._hosts:   # some files belong to the daemons' users
                with contextlib.suppress(TrialError):
                    each.run('find', path, '-mindepth', '1', '-delete', check=False)
            shutil.rmtree(path, ignore_errors=True)

    def close(self):
        made, self._hosts = self._hosts, []
        for each in made:
            with contextlib.suppress(TrialError):
                each.reset()
