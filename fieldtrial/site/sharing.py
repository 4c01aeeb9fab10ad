# SPDX-License-Identifier: GPL-2.0-or-later
"""Coordination of several gateways on one link: a store, and msfrs-share at each gateway."""
import re
import subprocess

from ..base.errors import TrialError
from ..base.paths import PROGRAMS
from . import addresses
from .processes import listens

PROGRAM = PROGRAMS / 'msfrs-share'
#: The first one installed is used.
STORES = 'valkey-server', 'redis-server'
NO_STORE = f'several gateways meet in a store: {" and ".join(STORES)} not found (Debian: the packages of these names)'
PORT = 6379
CONFIGURATION = '''\
link trial
gateway {name} share={share}%
{others}
store host={store} port={port}
segment /{squid}-msfrs_ledger.shm
control {control}
user proxy
'''
#: Its current state in its metrics.
STATE = re.compile(r'^msfrs_share_state\{state="(\w+)"\} 1$', re.MULTILINE)


def start(world):
    """Starts all of it, once each gateway has its Squid. Returns the Daemons; the store's is also world.store."""
    return [start_store(world), *map(start_share, world.at_gateways())]


def start_store(world):
    """Starts a Valkey or Redis without persistence. Returns its Daemon. Raises TrialError."""
    found = world.store_host.run('sh', '-c', 'for name; do command -v $name; done', 'sh', *STORES, check=False).split()
    if not found:
        raise TrialError(NO_STORE)
    world.store = world.start(world.store_host, [
        'setpriv', '--reuid', 'nobody', '--regid', 'nogroup', '--clear-groups', found[0], '--port', str(PORT), '--bind',
        addresses.STORE4, '--protected-mode', 'no', '--save', '', '--appendonly', 'no', '--dir', '/'], 'store.log',
        command='the store')
    world.store.wait_until(lambda: listens(world.store_host, PORT), f'listening on port {PORT}')
    return world.store


def shares(world):
    """{gateway: percent of the link while it is alone}, by the weights of the users behind it."""
    weights = {gateway: sum(world.weights[user.cls] for users in behind.values() for user in users)
               for gateway, behind in world.gateways.items()}
    return {gateway: min(max(round(100 * weight / sum(weights.values())), 1), 99)
            for gateway, weight in weights.items()}


def start_share(there, program=PROGRAM):
    """Starts msfrs-share at a gateway (see World.at_gateways), next to its Squid. Returns its Daemon. Raises
    TrialError."""
    name = there.gateway.role
    path, control = (there.directory / f'share-{name}.{what}' for what in ('conf', 'run/socket'))
    path.write_text(CONFIGURATION.format(
        name=name, share=shares(there)[there.gateway], store=addresses.STORE4, port=PORT, squid=there.service,
        control=control, others='\n'.join(f'other {other.role}' for other in there.gateways
                                          if other is not there.gateway)))
    share = there.start(there.gateway, [str(program), str(path)], f'share-{name}.log', command=f'msfrs-share of {name}',
                        stdout=subprocess.PIPE)
    if share.stdout.readline() != b'ready\n':
        share.wait(5)
        share.check()
    return share


def state(there, program=PROGRAM):
    """The state of a gateway's msfrs-share with regard to the others: together, last or static."""
    said = there.gateway.run(program, '--ask', 'metrics', there.directory / f'share-{there.gateway.role}.conf')
    return STATE.search(said)[1]
