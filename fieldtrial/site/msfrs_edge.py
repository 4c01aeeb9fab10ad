# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge on a host: its configuration, its rules and its counters."""
import pathlib
import re
import socket
import subprocess

from ..base.errors import TrialError
from ..base.paths import ROOT
from .addresses import LAN4, LAN6
from .host import HostError
from .shaping import ETHERNET

SCRIPT = ROOT / 'conf/iptables/msfrs-edge-iptables'
CONF = ROOT / 'conf/edge'
#: Queue number of the instance that counts traffic bypassing Squid.
BESIDE_QUEUE = 1
#: Timeout for a reply on the control socket, s.
PATIENCE = 10.0
SAMPLE = re.compile(r'^msfrs_edge_(\w+)(\{.*\})? (\S+)$', re.MULTILINE)


def start(scenario, host, program, conf, prefix=(), name='edge', **lines):
    """Starts it with a configuration: a path, or text. `lines` replace the lines of these keywords, or are added:
    `link='rate=10Mbit'`. prefix: words before its command line. name: prefix of its files. Returns its Daemon once it
    reads its queue; `control` is the path of its socket. Raises TrialError if it does not start."""
    if not _succeeds(host, 'test', '-x', program):
        raise TrialError(f'{program}: no program there; build and install it with `make install` at the top')
    text, path = conf, scenario.directory / f'{name}.conf'
    lines = {'control': scenario.directory / f'{name}.socket'} | lines
    if isinstance(conf, pathlib.Path):
        text = conf.read_text(encoding='utf-8')
        # A file's relative paths refer to its own directory.
        lines = {word: conf.parent / other for word, other in re.findall('(?m)^(rules) (.+)', text)} | lines
    path.write_text(with_lines(text, **lines), encoding='utf-8')
    edge = scenario.start(host, [*_ahead(host), *prefix, str(program), str(path)], f'{name}.log', command='msfrs-edge',
                          stdout=subprocess.PIPE)
    edge.control = lines['control']
    if edge.stdout.readline() != b'ready\n':
        edge.wait(5)
        edge.check()
    return edge


def _succeeds(host, *command):
    try:
        host.run(*command)
    except HostError:
        return False
    return True


def _ahead(host):
    """Real-time scheduling as in its systemd unit, so that it does not wait for other processes; if permitted."""
    first = ['chrt', '--rr', '1']
    return first if _succeeds(host, *first, 'true') else []


def with_lines(text, **lines):
    """A configuration with other values for these keywords; None removes a keyword."""
    kept = [line for line in text.splitlines() if line.split(maxsplit=1)[:1] not in [[word] for word in lines]]
    return '\n'.join(kept + [f'{word} {value}' for word, value in lines.items() if value is not None]) + '\n'


def rules(host, command, *options):
    """Runs msfrs-edge-iptables on a host; returns its output."""
    return host.run(SCRIPT, command, '--config', 'none', *options)


def ask(control, command):
    """Sends a command to the control socket of a running msfrs-edge; returns the reply."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(str(control))
        client.sendall(f'{command}\n'.encode())
        said = b''
        while piece := client.recv(1 << 16):
            said += piece
    return said.decode()


def totals(control):
    """Its metrics by name without the prefix `msfrs_edge_`, each summed over all labels."""
    found = {}
    for name, _, value in SAMPLE.findall(ask(control, 'metrics')):
        found[name] = found.get(name, 0) + float(value)
    return found


def shape(world, interface, rate_bps, program, times_ms):
    """Starts it on a world's gateway with conf/edge/sqm.conf in front of `interface`: a class for each user with the
    user's weight; within it connections share equally and new ones go first. times_ms: CoDel's target and interval.
    Returns its Daemon."""
    lines = [(CONF / 'sqm.conf').read_text(encoding='utf-8')]
    for user in world.users:
        lines += [f'class {user.name} weight={world.weights[user.cls]:g}',
                  *(f'classify {user.name} to={address}' for address in user.addresses)]
    edge = start(world, world.gateway, program, '\n'.join([*lines, 'class others default=on']), name='sqm',
                 link=f'rate={rate_bps:.0f}bit overhead={ETHERNET}B', mark=None,
                 aqm='codel target={:g} interval={:g}'.format(*times_ms))
    rules(world.gateway, 'up', '--link', f'{interface}=0', '--mark-shift', 'none')
    world.when_left(rules, world.gateway, 'down')
    return edge


def start_holding(world, program, **lines):
    """Starts it on a world's gateway with conf/edge/downlink.conf: it limits its queue to its share, by the ledger of
    the world's Squid, whose msfrs_link has `shared` (or which has several workers). `lines` as in start(). Returns its
    Daemon."""
    return start(world, world.gateway, program, CONF / 'downlink.conf', name='downlink',
                 queue=f'number={BESIDE_QUEUE} gso=off', inside=f'{LAN4} {LAN6}',
                 segment=f'/{world.service}-msfrs_ledger.shm', **lines)


def hold(world, interface, program, **lines):
    """The same for all traffic forwarded to the users through `interface`."""
    edge = start_holding(world, program, **lines)
    rules(world.gateway, 'up', '--link', f'{interface}={BESIDE_QUEUE}', '--own', 'no')
    return edge


def start_telling(world, program, socket_path):
    """Starts it on a world's gateway with conf/edge/excess.conf: it counts the traffic in its queue and reports it to
    Squid's socket. Returns its Daemon."""
    return start(world, world.gateway, program, CONF / 'excess.conf', name='beside', queue=f'number={BESIDE_QUEUE}',
                 inside=f'{LAN4} {LAN6}', excess=f'socket={socket_path}')


def tell(world, interface, program, socket_path):
    """The same for all traffic forwarded to the users through `interface`."""
    edge = start_telling(world, program, socket_path)
    rules(world.gateway, 'up', '--link', f'{interface}={BESIDE_QUEUE}', '--own', 'no', '--mark-shift', 'none')
    return edge
