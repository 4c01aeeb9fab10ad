# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge on a host: its configuration, its rules, and what it counts."""
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
#: Of what sees what comes beside Squid.
BESIDE_QUEUE = 1
#: Seconds in which an answer on the control socket must come.
PATIENCE = 10.0
SAMPLE = re.compile(r'^msfrs_edge_(\w+)(\{.*\})? (\S+)$', re.MULTILINE)


def start(scenario, host, program, conf, prefix=(), name='edge', **lines):
    """Starts it with a configuration: a path, or its text. `lines` replace the lines of these keywords, or are added:
    `link='rate=10Mbit'`. prefix: words before its command line. name: of its files. Its Daemon, once it reads its queue;
    `control` is the path of its socket. Raises TrialError if it does not start."""
    if not _succeeds(host, 'test', '-x', program):
        raise TrialError(f'{program}: no program there; build and install it with `make install` at the top')
    text, path = conf, scenario.directory / f'{name}.conf'
    lines = {'control': scenario.directory / f'{name}.socket'} | lines
    if isinstance(conf, pathlib.Path):
        text = conf.read_text(encoding='utf-8')
        # What a file names is beside it.
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
    """As its unit has it, it does not wait for others' turn on the processor; where that is permitted."""
    first = ['chrt', '--rr', '1']
    return first if _succeeds(host, *first, 'true') else []


def with_lines(text, **lines):
    """A configuration with other values for these keywords; None leaves a keyword out."""
    kept = [line for line in text.splitlines() if line.split(maxsplit=1)[:1] not in [[word] for word in lines]]
    return '\n'.join(kept + [f'{word} {value}' for word, value in lines.items() if value is not None]) + '\n'


def rules(host, command, *options):
    """Runs msfrs-edge-iptables on a host; what it says."""
    return host.run(SCRIPT, command, '--config', 'none', *options)


def ask(control, command):
    """What a running msfrs-edge answers on its control socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(str(control))
        client.sendall(f'{command}\n'.encode())
        said = b''
        while piece := client.recv(1 << 16):
            said += piece
    return said.decode()


def totals(control):
    """Its metrics by name without `msfrs_edge_`, each the sum over all labels."""
    found = {}
    for name, _, value in SAMPLE.findall(ask(control, 'metrics')):
        found[name] = found.get(name, 0) + float(value)
    return found


def shape(world, interface, rate_bps, program, times_ms):
    """Starts it on a world's gateway with conf/edge/sqm.conf in front of `interface`: connections share alike and new
    ones go first, within a class of its own for each user, of the user's weight. times_ms: CoDel's target and interval.
    Its Daemon."""
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
    """Starts it on a world's gateway with conf/edge/downlink.conf: what comes to its queue is held to its share, by the
    ledger of the world's Squid, whose msfrs_link has `shared` (or which has several workers). `lines` as of start().
    Its Daemon."""
    return start(world, world.gateway, program, CONF / 'downlink.conf', name='downlink',
                 queue=f'number={BESIDE_QUEUE} gso=off', inside=f'{LAN4} {LAN6}',
                 segment=f'/{world.service}-msfrs_ledger.shm', **lines)


def hold(world, interface, program, **lines):
    """The same for all that is forwarded to the users by `interface`."""
    edge = start_holding(world, program, **lines)
    rules(world.gateway, 'up', '--link', f'{interface}={BESIDE_QUEUE}', '--own', 'no')
    return edge


def start_telling(world, program, socket_path):
    """Starts it on a world's gateway with conf/edge/excess.conf: what comes to its queue is counted, and told to Squid's
    socket. Its Daemon."""
    return start(world, world.gateway, program, CONF / 'excess.conf', name='beside', queue=f'number={BESIDE_QUEUE}',
                 inside=f'{LAN4} {LAN6}', excess=f'socket={socket_path}')


def tell(world, interface, program, socket_path):
    """The same for all that is forwarded to the users by `interface`."""
    edge = start_telling(world, program, socket_path)
    rules(world.gateway, 'up', '--link', f'{interface}={BESIDE_QUEUE}', '--own', 'no', '--mark-shift', 'none')
    return edge
