# SPDX-License-Identifier: GPL-2.0-or-later
"""The spec of a run: a JSON file, read strictly. A wrong one is refused with the key, the value and what is allowed."""
import collections
import dataclasses
import os

from ..base import strict
from ..base.strict import SpecError, Value
from ..site import grid
from ..site.addresses import DIRECT_PORT
from . import workloads
from .traffic import sizes
from .traffic.workload import ParameterError, Workload

VERSION = 1
MOST_USERS, MOST_SERVERS = 10_000, 1_000


@dataclasses.dataclass(frozen=True)
class User:
    """A person behind the gateway: requests come from one of `addresses`."""
    name: str
    cls: str
    addresses: tuple


@dataclasses.dataclass(frozen=True)
class Server:
    """A server beyond the link. Without `addresses` its name is looked up once before the start."""
    name: str
    addresses: tuple
    group: str
    rtt_ms: float


@dataclasses.dataclass(frozen=True)
class Spec:
    """A run, as understood: all defaults filled in. Units are in the names; rate_bps counts Ethernet frames."""
    workload: Workload
    seed: int
    duration_s: float
    drain_s: float
    rate_bps: float
    classes: tuple
    users: tuple
    mine: tuple        # those whose requests this generator makes; what they offer is drawn with all of them
    servers: tuple
    sizes: object
    tls_share: float
    tls_ca: str
    port: int
    tls_port: int
    direct_port: int   # of servers, plain; nobody intercepts it
    t0_monotonic: float
    out: str


def load(path):
    """The Spec in the file `path`. Raises SpecError."""
    return parse(strict.read(path), path)


def parse(data, source='spec'):
    """The Spec that the JSON object `data` says. `source` begins every message. Raises SpecError."""
    top = Value(data, source, ': ')
    version = top.whole('version', low=1)
    if version != VERSION:
        top.refuse('version', version, str(VERSION))
    rate = top.number('rate_bps', low=8_000, high=100e9)
    classes = top.items('classes', lambda item: item.word(), most=1000)
    if len(set(classes)) != len(classes):
        top.refuse('classes', list(classes), 'a list without repeats')
    users = top.items('users', lambda item: _user(item.object(), classes), most=MOST_USERS)
    servers = top.items('servers', lambda item: _server(item.object()), most=MOST_SERVERS)
    for key, things in (('users', users), ('servers', servers)):
        name, count = collections.Counter(thing.name for thing in things).most_common(1)[0]
        if count > 1:
            raise SpecError(f'{source}: {key}: name "{name}" is used twice; each must be another')
    mine = _mine(top, users)
    tls_share = top.number('tls_share', low=0.0, high=1.0, default=0.0)
    spec = Spec(
        workload=_workload(top), seed=top.whole('seed', low=0),
        duration_s=top.number('duration_s', low=0.1, high=86_400.0),
        drain_s=top.number('drain_s', low=0.0, high=3_600.0, default=0.0),
        rate_bps=rate, classes=classes, users=users, mine=mine, servers=servers, sizes=_sizes(top, rate),
        tls_share=tls_share, tls_ca=top.text('tls_ca', default=''),
        port=top.whole('port', low=1, high=65_535, default=80),
        tls_port=top.whole('tls_port', low=1, high=65_535, default=443),
        direct_port=top.whole('direct_port', low=1, high=65_535, default=DIRECT_PORT),
        t0_monotonic=top.number('t0_monotonic', low=0.0, default=0.0), out=top.text('out'))
    top.done()
    if (tls_share or spec.workload.tunnels()) and not os.path.isfile(spec.tls_ca):
        top.refuse('tls_ca', spec.tls_ca, 'a file with the certificate of the servers (needed with tls_share > 0, and for '
                   'workloads over HTTP/2)')
    if not os.path.isdir(spec.out):
        top.refuse('out', spec.out, 'a directory')
    return spec


def as_json(spec):
    """The Spec as JSON types, for meta.json."""
    fields = dataclasses.asdict(dataclasses.replace(spec, workload=None, sizes=None, mine=()))
    del fields['mine']   # the run is the same, whoever makes which part of it
    for user in fields['users']:
        user['class'] = user.pop('cls')
    fields.update(workload=spec.workload.name, parameters=spec.workload.values, sizes=spec.sizes.summary())
    return fields


def _workload(top):
    name = top.word('workload')
    values = top.take('parameters', {})
    if name not in workloads.names():
        top.refuse('workload', name, 'one of ' + ', '.join(workloads.names()))
    if not isinstance(values, dict):
        top.refuse('parameters', values, 'an object {name: value}')
    try:
        return workloads.get(name)(values, f'{top.where}: parameters.')
    except ParameterError as error:
        raise SpecError(str(error)) from None


def _user(item, classes):
    user = User(item.word('name'), item.word('class'), item.items('addresses', lambda address: address.address()))
    if user.cls not in classes:
        item.refuse('class', user.cls, 'one of ' + ', '.join(classes))
    item.done()
    return user


def _mine(top, users):
    """The users named by `mine`, in the order of all; all of them where it is left out."""
    names = top.items('mine', lambda item: item.word(), most=MOST_USERS, default=())
    unknown = set(names) - {user.name for user in users}
    if unknown:
        top.refuse('mine', sorted(unknown)[0], 'the name of one of the users')
    return tuple(user for user in users if not names or user.name in names)


def _server(item):
    server = Server(item.host('name'), item.items('addresses', lambda address: address.address(), default=()),
                    item.text('group', default=''), item.number('rtt_ms', low=0.0, high=60_000.0, default=0.0))
    item.done()
    return server


def _sizes(top, rate):
    item = Value(top.take('sizes', {'distribution': 'lognormal'}), f'{top.where}: sizes')
    cap = round(rate / 8 * sizes.CAP_SECONDS)
    kind = item.word('distribution')
    limits = {'low': grid.LOW, 'high': grid.HIGH}
    if kind == 'lognormal':
        made = sizes.LogNormal(item.number('m', low=0.0, high=20.0, default=sizes.PAPER_M),
                               item.number('s', low=0.01, high=10.0, default=sizes.PAPER_S),
                               item.whole('max', **limits, default=min(max(cap, 100_000), grid.HIGH)))
    elif kind == 'fixed':
        made = sizes.Fixed(item.whole('size', **limits))
    else:
        item.refuse('distribution', kind, 'lognormal or fixed')
    item.done()
    return made
