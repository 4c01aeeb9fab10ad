# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenario: a small internet with one access link.

    users --- lan0 | gw | wan0 === acc0 | isp | --- delay --- | farm
    own addresses   Squid      C, drop-tail                     servers with their own round-trip times

Users may be on several hosts (groups), connected by a switch at lan0, to which a separate host of the name server may
be connected, too; the fabric determines their number. With several gateways acc0 is a switch as well. Each gateway has
a part of the users on a separate host behind it, a Squid, and a cable to the host of the store, by which the gateways
coordinate:

    users --- lan0 | gw  | wan0 ===+
                      store0        === acc0 | isp | --- delay --- | farm
    users2 -- lan0 | gw2 | wan0 ===+

This module does not depend on the kind of hosts; see `netns` for one. No host has a route to the outside. README.md has
an example.
"""
import copy
import http.client
import os
import pathlib
import re
import signal
import sys
import time

from ..base.errors import TrialError
from ..base.paths import PROGRAMS, ROOT
from . import addresses, bottleneck, delay, grid, groups, guest, lan, names, processes, shaping
from .host import HostError
from .lan import LAN
from .netns import NetnsFabric
from .processes import listens
from .scenario import Scenario

#: Twelve servers, evenly spread as in the paper's figure 7; mean 154 ms.
DEFAULT_RTTS = tuple(12 + (296 - 12) * i / 11 for i in range(12))
DEFAULT_WEIGHTS = {'gold': 4, 'silver': 2, 'bronze': 1}

FORWARD_PORT, INTERCEPT_PORT, INTERCEPT_TLS_PORT = 3128, 3129, 3130
NO_SQUID = '{}: no Squid there; build it with squid-patches/build, or name another with --squid'
WAN, ACCESS, STORE = 'wan0', 'acc0', 'store0'

#: Linux's defaults, set explicitly, so that a tuned machine runs the same trial.
SYSCTLS = ('net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1', 'net.ipv4.conf.all.rp_filter=0',
           'net.ipv4.conf.default.rp_filter=0', 'net.ipv6.conf.default.accept_ra=0',
           'net.ipv6.conf.default.accept_dad=0', 'net.ipv4.tcp_sack=1', 'net.ipv4.tcp_timestamps=1',
           'net.ipv4.tcp_window_scaling=1', 'net.ipv4.tcp_ecn=2', 'net.ipv4.tcp_no_metrics_save=0',
           'net.ipv4.tcp_slow_start_after_idle=1', 'net.ipv4.tcp_rmem=4096 131072 6291456',
           'net.ipv4.tcp_wmem=4096 16384 4194304', 'net.ipv4.ip_local_port_range=10240 65000')


def sockets_of(program):
    """The directory of the sockets of a Squid's workers, below its installation prefix."""
    return pathlib.Path(program).parents[1] / 'var/run/squid'


def certificate_helper_of(program):
    """A Squid's program that makes certificates."""
    return pathlib.Path(program).parents[1] / 'libexec/security_file_certgen'


def private_sockets(program):
    """Prefix of the command line of a Squid with several workers: mounts an empty directory for their sockets, in which
    its effective user may write. Only that Squid sees it, since each command on a host has its own mounts."""
    return ['sh', '-c', f'mount -t tmpfs -o mode=777 msfrs {sockets_of(program)} && exec "$@"', 'sh']


class World(Scenario):
    """Built on entry, torn down on exit in any case.

    rate_bps: C in bit/s, counting Ethernet headers. buffer_bdp: the ISP's queue in bandwidth-delay products of the
    round-trip time `buffer_rtt_ms`, by default the servers' mean: near servers do not change the provider.
    users: number in each class. weights: class name to weight, in order. directory: where daemons keep their files; by
    default a temporary one, removed at the end. distance: 'auto', 'netem' or 'delayline'. tls: whether port 443 is
    intercepted too. isp: implementation of the bottleneck, one of bottleneck.NAMES. deal: one of
    `groups`, distributes the users if the fabric has several hosts for them. least_bps: rate available most of the
    time, where it varies; by default rate_bps, which is then its mean. workers: of Squid. quic: whether the gateway
    forwards QUIC.
    certificate_helper: Squid's program that makes certificates; with it TLS is decrypted, else it is spliced.
    others: Servers with addresses and distances of their own, which do not serve the web.
    gateways: number on the link; with several, operations at each of them use its at_gateways(). guest: whether
    `shaper` is a guest (see there) in the cable to the users, instead of the gateway's kernel.
    """

    def __init__(self, *, rate_bps, buffer_bdp=1.5, buffer_rtt_ms=None, rtts_ms=DEFAULT_RTTS, users=(4, 4, 4),
                 weights=None, directory=None, distance='auto', delayline=None, fabric=None, tls=False,
                 isp='tbf', deal=groups.by_class, least_bps=None, workers=1, quic=True, gateways=1,
                 guest=False, certificate_helper=None, others=()):
        super().__init__()
        self.rate_bps = rate_bps
        self.least_bps = least_bps or rate_bps
        self.weights = dict(weights or DEFAULT_WEIGHTS)
        self.servers = addresses.servers(rtts_ms)
        self._others = list(others)
        self.users = addresses.users(list(self.weights), users)
        self.mean_rtt_ms = sum(rtts_ms) / len(rtts_ms)
        self.buffer_bdp = buffer_bdp
        self.tls = tls
        self.certificate_helper = certificate_helper
        self.workers = workers
        self._quic = quic
        self._guest = guest
        self.shaper = None     #: (host, interface) for the queueing disciplines of arms: towards the users
        if len(self.users) < gateways:
            raise TrialError(f'{gateways} gateways: there are only {len(self.users)} users to go through them')
        self.buffer_bytes = round(buffer_bdp * shaping.bdp_bytes(rate_bps, buffer_rtt_ms or self.mean_rtt_ms))
        self._wanted = directory
        self._distance = distance
        self._delayline = str(delayline or PROGRAMS / 'msfrs-delayline')
        self._fabric = fabric
        self._deal = deal
        self.packet_overhead = 0   #: bytes of a packet on the link not counted by WAN's receive counter
        self._gateway_roles = ['gw', *(f'gw{number}' for number in range(2, gateways + 1))]
        self.gateway = self.isp = self.farm = self.users_host = self.names_host = None
        self.store_host = self.store = None     #: host of the store of several gateways, and its Daemon
        self.gateways = {}     #: all gateways, and the `groups` of each; `gateway` is the first
        self._named = False    # whether the users have a name server
        self.groups = {}       #: hosts of users, and the users on each; users_host is the first
        self.farms = {}        #: hosts of servers, and the servers on each
        self._isp = isp
        self.bottleneck = None #: the object that limits the link
        self.distance = None   #: the object that makes the delays
        self.certificates = []   #: of the servers, once started
        self.stalling = []       #: daemons of the servers that can be stalled, see start_origin

    def _build(self):
        fabric = self._fabric or self._stack.enter_context(NetnsFabric())
        self._lasting = fabric.lasting
        self.packet_overhead = fabric.uncounted
        if self._wanted is None:
            self._wanted = self._stack.enter_context(fabric.directory())
        self.directory = pathlib.Path(self._wanted).resolve()
        self.gateways = self._gateways(fabric)
        self.gateway = next(iter(self.gateways))
        self.groups = {host: users for behind in self.gateways.values() for host, users in behind.items()}
        self.users_host = next(iter(self.groups))
        self.isp = fabric.host('isp')
        self.names_host = fabric.host(fabric.names) if fabric.names and len(self.gateways) == 1 else self.gateway
        self.farms = self._farms(fabric)
        self.farm = next(iter(self.farms))
        for host in dict.fromkeys((*self.groups, self.names_host, *self.gateways, self.isp, *self.farms)):
            host.set_kernel(SYSCTLS)
        self.shaper = self.gateway, LAN
        for gateway, behind in self.gateways.items():
            inside = {host: [(user.v4, user.v6) for user in users] for host, users in behind.items()}
            if self.users_host in inside:
                inside[self.users_host].append((addresses.SINK4, addresses.SINK6))
            if self.names_host not in self.gateways:
                inside[self.names_host] = [(addresses.NAMES4, addresses.NAMES6),
                                           (addresses.GATEWAY_NAMES4, addresses.GATEWAY_NAMES6)]
            self._connect_users(fabric, gateway, list(inside))
            lan.address(gateway, inside)
        lan.connect(fabric, self.isp, list(self.gateways), ACCESS, WAN)
        self._address_access()
        if len(self.gateways) > 1:
            self._connect_store(fabric)
        self.distance = delay.choose(self._distance, self.isp, self._delayline, self.servers)
        self._stack.callback(self.distance.close)
        self.distance.connect(fabric, self.isp, self.farms, self.directory)
        if len(self.servers) > 1:
            self.narrow(self.servers[-1])
        link = self.isp, ACCESS, self.rate_bps, self.buffer_bytes
        self.bottleneck = bottleneck.Edge(self, *link, PROGRAMS / 'msfrs-edge') if self._isp == 'edge' else \
            bottleneck.TokenBucket(*link)
        self.when_left(self.bottleneck.close)

    def _gateways(self, fabric):
        """{gateway: {host behind it: its users}}; groups without users are not touched."""
        count, found = len(self._gateway_roles), {}
        places = [*fabric.groups, *(f'users{number}' for number in range(len(fabric.groups) + 1, count + 1))]
        for number, users in enumerate(groups.in_turn(self.users, count)):
            mine = places[number::count]
            behind = {fabric.host(role): dealt for role, dealt in zip(mine, self._deal(users, len(mine))) if dealt}
            found[fabric.host(self._gateway_roles[number])] = behind
        return found

    def at_gateways(self):
        """Views of this world at each of its gateways: `gateway` is that one, `groups` are those behind it, and daemons
        and requests are started there. A list, beginning with the first gateway."""
        if len(self.gateways) == 1:
            return [self]
        found = []
        for gateway, behind in self.gateways.items():
            there = copy.copy(self)
            there.gateway, there.groups, there.users_host = gateway, behind, next(iter(behind))
            if self.names_host in self.gateways:
                there.names_host = gateway
            found.append(there)
        return found

    def host_of(self, user):
        return next(host for host, users in self.groups.items() if user in users)

    def follow_uids(self, users):
        """Gives programs that run as the Unix user of one of `users` (addresses.uid) that user's addresses."""
        for host, here in self.groups.items():
            lan.follow_uid(host, {addresses.uid(number): (user.v4, user.v6) for number, user in enumerate(self.users)
                                  if user in users and user in here})

    def _farms(self, fabric):
        """{host: its servers}. If a fabric has a host for near and one for far servers, each has its own."""
        if len(fabric.places) == 1:
            return {fabric.host(fabric.places[0]): [*self.servers, *self._others]}
        found = {place: [server for server in self.servers if server.group == place] for place in fabric.places}
        return {fabric.host(place): servers for place, servers in found.items() if servers}

    def _address_access(self):
        lines = [f'addr add {addresses.ISP4}/24 dev {ACCESS}', f'addr add {addresses.ISP6}/64 dev {ACCESS} nodad',
                 f'route add {addresses.LAN4} via {addresses.GATEWAY_OUT4}',
                 f'route add {addresses.LAN6} via {addresses.GATEWAY_OUT6}']
        for number, (gateway, behind) in enumerate(self.gateways.items()):
            v4, v6 = addresses.outside(number)
            gateway.batch([f'addr add {v4}/24 dev {WAN}', f'addr add {v6}/64 dev {WAN} nodad',
                           *(f'route add default via {isp} congctl cubic' for isp in (addresses.ISP4, addresses.ISP6))])
            if number:      # traffic not through Squid has the users' addresses
                lines += [f'route add {address} via {via}' for users in behind.values() for user in users
                          for address, via in ((user.v4, v4), (user.v6, v6))]
        self.isp.batch(lines + [f'route replace blackhole {address}' for address in addresses.SILENT.addresses])

    def narrow(self, server):
        """Gives the way from the ISP to a server the MTU addresses.NARROW_MTU, as to the last of several servers."""
        for address, family in ((server.v4, '-4'), (server.v6, '-6')):
            words = self.isp.run('ip', family, 'route', 'get', address).split()
            self.isp.run('ip', family, 'route', 'replace', address, 'dev', words[words.index('dev') + 1],
                         'mtu', 'lock', addresses.NARROW_MTU)

    def _connect_users(self, fabric, gateway, members):
        """Raises TrialError where a guest is wanted and there is more than one cable."""
        if not self._guest:
            lan.connect(fabric, gateway, members)
            return
        if len(self.gateways) > 1 or len(members) > 1:
            raise TrialError('a guest that shapes stands between one gateway and one host of users')
        between = fabric.host('bump')
        fabric.wire(gateway, LAN, between, 'in0')
        fabric.wire(between, 'out0', members[0], lan.HOME)
        self.shaper = guest.Guest(self, between, 'in0', 'out0'), guest.PORT

    def _connect_store(self, fabric):
        """Connects the store apart from the access link, which the gateways' messages do not use."""
        self.store_host = fabric.host('store')
        lan.connect(fabric, self.store_host, list(self.gateways), STORE, STORE)
        ends = [(self.store_host, addresses.STORE4),
                *((gateway, addresses.at_store(number)) for number, gateway in enumerate(self.gateways))]
        for host, address in ends:
            host.batch([f'addr add {address}/32 dev {STORE}',
                        f'route add {addresses.STORES4} dev {STORE} src {address} congctl cubic'])

    # Programs on the hosts.

    def start_names(self, *, same=False):
        """Starts the users' name server and the gateway's (see `nameserver`), which knows other addresses of the servers
        (addresses.elsewhere), as where users have a resolver of their own; with `same` it has the users' answers. A list
        of Daemons."""
        self._named = True
        return [self._start_dnsmasq(self.names_host, 'names', self._inside_names, self.servers),
                self._start_dnsmasq(self.names_host, 'gateway-names', self.nameserver,
                                    self.servers if same else addresses.elsewhere(self.servers))]

    def start_names_of(self, host):
        """Starts a name server for a further host alone, with the users' answers. Returns the Daemon."""
        return self._start_dnsmasq(host, 'names', '127.0.0.1', self.servers)

    def _start_dnsmasq(self, host, label, address, servers):
        """It resolves the names of these servers and of addresses.SILENT, and nothing else."""
        records = [f'--host-record={server.name},{server.v4},{server.v6},3600'
                   for server in (*servers, addresses.SILENT)]
        daemon = self.start(host, [
            'dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', '--no-hosts', '--no-poll',
            '--local=/test/', '--pid-file=', '--user=nobody', '--log-facility=-', '--bind-interfaces',
            f'--listen-address={address}', *records], f'dnsmasq-{host.role}-{label}.log')
        daemon.wait_until(lambda: listens(host, 53, address), f'listening on port 53 of {address}')
        return daemon

    @property
    def _inside_names(self):
        return addresses.GATEWAY_IN4 if self.names_host is self.gateway else addresses.NAMES4

    @property
    def nameserver(self):
        """The address of the gateway's name server."""
        return '127.0.0.1' if self.names_host is self.gateway else addresses.GATEWAY_NAMES4

    def start_origin(self, *, stalling=False, **seeds):
        """Starts nginx on the servers and returns a list of Daemons; the servers of one host are one process and differ
        by address and distance. With `stalling` every fourth server is a separate process, so that these can be stopped
        alone. seeds: see _start_nginx."""
        if not stalling:
            return [self._start_nginx(host, servers, host.role, **seeds)
                    for host, servers in self.farms.items()]
        daemons = []
        for host, servers in self.farms.items():
            some, others = servers[::4], [server for number, server in enumerate(servers) if number % 4]
            self.stalling.append(self._start_nginx(host, some, f'{host.role}-stalling', alone=True,
                                                    **seeds))
            if others:
                daemons.append(self._start_nginx(host, others, host.role, alone=True, **seeds))
        return [*daemons, *self.stalling]

    def _start_nginx(self, host, servers, label, *, alone=False, pages_seed=None, first_byte_seed=None):
        """`alone`: listen on the addresses of these servers only, not on all of the host. The seeds are those of
        origin.Origin."""
        directory = self.directory / f'origin-{label}'
        only = ['--addresses', *(address for server in servers for address in server.addresses)] if alone else []
        more = [word for option, seed in (('--pages', pages_seed), ('--first-byte', first_byte_seed))
                if seed is not None for word in (option, str(seed))]
        daemon = self.start(host, [sys.executable, '-m', 'fieldtrial.site.origin', str(directory), *only, *more,
                                   '--direct-port', str(addresses.DIRECT_PORT), '--names',
                                   *(server.name for server in servers)],
                            f'nginx-{label}.log', command='nginx', cwd=ROOT)
        # Written once it listens, on any addresses.
        daemon.wait_until((directory / 'nginx.pid').exists, 'listening on ports 80 and 443')
        self.certificates.append(directory / 'tls.crt')
        return daemon

    def authorities(self):
        """The file with the certificates that users trust: the servers' own, or that of a gateway that decrypts TLS."""
        return self.squid_directory() / 'gateway.pem.crt' if self.certificate_helper else self.certificate()

    def certificate(self):
        """The file with the servers' certificates, for verification by their clients."""
        path = self.directory / 'servers.pem'
        path.write_text(''.join(each.read_text() for each in self.certificates))
        return path

    def squid_directory(self):
        """The directory of Squid's files, writable for its unprivileged user."""
        directory = self.directory / self.gateway.role.replace(self._gateway_roles[0], 'squid')
        if not directory.exists():
            self.gateway.run('install', '-d', '-o', str(os.geteuid()), '-g', 'proxy', '-m', '2775', directory)
        return directory

    def start_squid(self, conf, program, timeout=20.0):
        """Starts Squid on the gateway with this configuration text, in the foreground, and redirects port 80 to it.
        Returns the Daemon once it answers; raises TrialError with the end of cache.log if it does not."""
        directory = self.squid_directory()
        ports = [FORWARD_PORT, INTERCEPT_PORT]
        if self.tls:
            self._make_certificate(directory)
            ports.append(INTERCEPT_TLS_PORT)
        path = directory / 'squid.conf'
        path.write_text(conf)
        try:
            self.gateway.run('test', '-x', program)
        except HostError:
            raise TrialError(NO_SQUID.format(program)) from None
        parsed = self.gateway.run('sh', '-c', 'exec "$@" 2>&1', 'sh', program, '-k', 'parse', '-f', path, check=False,
                                  timeout=60)
        (directory / 'parse.log').write_text(parsed)
        ignored = re.search('.*(ERROR|unrecognized): .*', parsed)
        if ignored and 'FATAL: ' not in parsed:     # with that, it does not start
            raise TrialError(f'{path}: Squid ignores part of it: {ignored[0]}')
        how = [str(program), '-N'] if self.workers == 1 else [*private_sockets(program), str(program), '--foreground']
        squid = self.start(self.gateway, [*how, '-n', self.service, '-f', str(path)],
                           f'{directory.name}/squid.out', command='squid',
                           stop_signal=signal.SIGINT)   # SIGTERM waits for clients in vain
        squid.logs.append(directory / 'cache.log')
        squid.wait_until(lambda: all(listens(self.gateway, port) for port in ports),
                         f'listening on ports {", ".join(map(str, ports))}', timeout)
        self.intercept()
        return squid

    def _make_certificate(self, directory):
        """Squid requires a certificate on a port that intercepts TLS. Spliced clients never see it; it signs those that
        clients see whose TLS is decrypted."""
        path = directory / 'gateway.pem'
        self.gateway.run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
                         '-nodes', '-days', '30', '-subj', '/CN=gateway.test', '-keyout', path, '-out', f'{path}.crt')
        self.gateway.run('sh', '-c', 'cat "$1.crt" >>"$1"', 'sh', path)
        self.gateway.run('chmod', '640', path)
        self.gateway.run('chgrp', 'proxy', path)
        if self.certificate_helper:
            self.make_certificate_store(self.certificate_helper)

    def make_certificate_store(self, helper):
        """Makes the directory in which Squid's program `helper` keeps certificates, and returns it."""
        store = self.squid_directory() / 'certificates'
        self.gateway.run(helper, '-c', '-s', store, '-M', '4MB')
        self.gateway.run('chown', '-R', 'proxy:proxy', store)
        return store

    @property
    def service(self):
        """Squid's service name. It is unique, because Squids of one name on one machine share memory, and one that
        stops removes it."""
        return ''.join(filter(str.isalnum, self.gateway.name))

    def intercept(self, *options):
        """Redirects the users' traffic to port 80 (and 443 with `tls`) to Squid, by the project's script. `options`
        replace the usual ones."""
        usual = ('--intercept', '80,443' if self.tls else '80', '--quic', 'allow' if self._quic else 'reject',
                 '--redirect-ports', f'{INTERCEPT_PORT},{INTERCEPT_TLS_PORT}')
        script = ROOT / 'conf/iptables/msfrs-iptables'
        self.gateway.run(script, 'up', '--config', 'none', '--inside', LAN, *(options or usual))
        if self._lasting:
            self.when_left(self.gateway.run, script, 'down', check=False)

    def start_syn(self):
        """Starts msfrs-syn on the gateway, as `msfrsctl setup` does, so that a user's connection is answered when its
        server answers. Returns the Daemon."""
        path = self.directory / 'syn.conf'
        path.write_text('squid-user = proxy\n')
        daemon = self.start(self.gateway, [str(PROGRAMS / 'msfrs-syn'), str(path)], 'syn.log')

        def reads():
            with self.gateway.open('/proc/net/netfilter/nfnetlink_queue') as queues:
                return bool(queues.read())
        daemon.wait_until(reads, 'reading its queue')
        return daemon

    def fetch(self, user, server, size, *, family=4, timeout=60.0):
        """Makes one request of a user to a server across the whole path: (HTTP status, body bytes, header fields).
        Raises OSError or HTTPException."""
        address, source = (server.v4, user.v4) if family == 4 else (server.v6, user.v6)
        status, body, header = processes.fetch(
            self.host_of(user), (address, 80), f'/b/{size}/{user.name}-{time.monotonic_ns()}', source, timeout,
            {'Host': server.name})
        return status, len(body), header

    def try_out(self, by_squid=True):
        """Tests a server's name and one request end to end, so that errors do not first appear in the records. Raises
        TrialError if a group cannot resolve the name, or if the request is not answered, or passes
        Squid although it should not, or the reverse."""
        for host, users in self.groups.items() if self._named else ():
            found = names.look_up(host, users[0].v4, self._inside_names, self.servers[0].name)
            if found != self.servers[0].v4:
                raise TrialError(f'{self.servers[0].name} is {self.servers[0].v4}, and {users[0].v4} was told {found}')
        user, server = next(iter(self.groups.values()))[0], self.servers[0]
        try:
            status, _, header = self.fetch(user, server, grid.LOW, timeout=20.0)
        except (OSError, http.client.HTTPException) as error:
            raise TrialError(f'a first request from {user.v4} to {server.v4} failed: {error}') from None
        if status != 200 or ('gateway.test' in header.get('Via', '')) != by_squid:
            raise TrialError(f'a first request from {user.v4} to {server.v4} had status {status} and header Via: '
                             f'{header.get("Via", "none")}; expected were 200 and '
                             f'{"a" if by_squid else "no"} Via with gateway.test')

    def check(self):
        """Raises TrialError if the delay line has ended, or the bottleneck."""
        self.distance.check()
        self.bottleneck.check()
        if self._guest:
            self.shaper[0].check()

    def congestion_control(self, host):
        """Names of the congestion controls of a host's established connections, from `ss`; connections to itself are
        excluded, whose route does not set one."""
        names, elsewhere = set(), ('not', 'dst', '127.0.0.0/8', 'and', 'not', 'dst', '[::1]')
        for line in host.run('ss', '-tinH', 'state', 'established', *elsewhere).splitlines():
            words = line.split()
            names.update(word for word in words if word in ('cubic', 'bbr', 'reno', 'dctcp', 'vegas', 'htcp'))
        return names
