# SPDX-License-Identifier: GPL-2.0-or-later
"""The spec of a run: a JSON file, read strictly. What is wrong is refused with the key, the value and what is allowed."""
import dataclasses
import ipaddress
import json
import math
import os
import re

from .. import workloads
from ..errors import TrialError
from . import sizes
from .workload import ParameterError

VERSION = 1
WORD = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,62}')
MOST_USERS, MOST_SERVERS = 10_000, 1_000


class SpecError(TrialError):
    """The spec cannot be run; str() names the file, the key, the value found and what is allowed."""


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
    workload: workloads.Workload
    seed: int
    duration_s: float
    drain_s: float
    rate_bps: float
    classes: tuple
    users: tuple
    servers: tuple
    sizes: object
    tls_share: float
    tls_ca: str
    port: int
    tls_port: int
    t0_monotonic: float
    out: str


def load(path):
    """The Spec in the file `path`. Raises SpecError."""
    try:
        with open(path, encoding='utf-8') as file:
            data = json.load(file)
    except OSError as error:
        raise SpecError(f'{path}: {error.strerror}') from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SpecError(f'{path}: not JSON: {error}') from None
    return parse(data, path)


def parse(data, source='spec'):
    """The Spec that the JSON object `data` says. `source` begins every message. Raises SpecError."""
    top = _Object(data, source)
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
        names = [thing.name for thing in things]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            top.refuse(key, twice[0], 'a name used once')
    tls_share = top.number('tls_share', low=0.0, high=1.0, default=0.0)
    spec = Spec(
        workload=_workload(top), seed=top.whole('seed', low=0),
        duration_s=top.number('duration_s', low=0.1, high=86_400.0),
        drain_s=top.number('drain_s', low=0.0, high=3_600.0, default=0.0),
        rate_bps=rate, classes=classes, users=users, servers=servers, sizes=_sizes(top, rate),
        tls_share=tls_share, tls_ca=top.text('tls_ca', default=''),
        port=top.whole('port', low=1, high=65_535, default=80),
        tls_port=top.whole('tls_port', low=1, high=65_535, default=443),
        t0_monotonic=top.number('t0_monotonic', low=0.0, default=0.0), out=top.text('out'))
    top.done()
    if tls_share and not os.path.isfile(spec.tls_ca):
        top.refuse('tls_ca', spec.tls_ca, 'a file with the certificate of the servers (needed with tls_share > 0)')
    if not os.path.isdir(spec.out):
        top.refuse('out', spec.out, 'a directory')
    return spec


def as_json(spec):
    """The Spec as JSON types, for meta.json."""
    fields = dataclasses.asdict(dataclasses.replace(spec, workload=None, sizes=None))
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


def _server(item):
    server = Server(item.word('name'), item.items('addresses', lambda address: address.address(), default=()),
                    item.text('group', default=''), item.number('rtt_ms', low=0.0, high=60_000.0, default=0.0))
    item.done()
    return server


def _sizes(top, rate):
    item = _Object(top.take('sizes', {'distribution': 'lognormal'}), f'{top.where}: sizes')
    cap = round(rate / 8 * sizes.CAP_SECONDS)
    kind = item.word('distribution')
    limits = {'low': sizes.GRID_LOW, 'high': sizes.GRID_HIGH}
    if kind == 'lognormal':
        made = sizes.LogNormal(item.number('m', low=0.0, high=20.0, default=sizes.PAPER_M),
                               item.number('s', low=0.01, high=10.0, default=sizes.PAPER_S),
                               item.whole('max', **limits, default=min(max(cap, 100_000), sizes.GRID_HIGH)))
    elif kind == 'fixed':
        made = sizes.Fixed(item.whole('size', **limits))
    else:
        item.refuse('distribution', kind, 'lognormal or fixed')
    item.done()
    return made


_MISSING = object()


class _Object:
    """A JSON value with the words for where it stands; what is taken from it is checked, what is left is refused."""

    def __init__(self, value, where):
        self.where, self._value, self._left = where, value, None
        if isinstance(value, dict):
            self._left = dict(value)

    def refuse(self, key, value, allowed):
        """Raises SpecError for the value of `key` (or for this value itself, with an empty key)."""
        shown = json.dumps(value)
        raise SpecError(f'{self._at(key)}: {shown[:80]} is not {allowed}')

    def _at(self, key):
        return self.where + (f': {key}' if ': ' not in self.where else f'.{key}') if key else self.where

    def object(self):
        """This value, which must be a JSON object."""
        if self._left is None:
            self.refuse('', self._value, 'an object {...}')
        return self

    def take(self, key, default=_MISSING):
        """The value of `key`, or with an empty key this value."""
        if not key:
            return self._value
        self.object()
        if key not in self._left:
            if default is _MISSING:
                raise SpecError(f'{self._at(key)}: missing')
            return default
        return self._left.pop(key)

    def done(self):
        """Refuses what nobody took."""
        for key in self._left:
            raise SpecError(f'{self._at(key)}: no such key')

    def text(self, key='', default=_MISSING):
        value = self.take(key, default)
        if not isinstance(value, str):
            self.refuse(key, value, 'a text')
        return value

    def word(self, key=''):
        value = self.text(key)
        if not WORD.fullmatch(value):
            self.refuse(key, value, 'a name of letters, digits, "_", "." and "-" (at most 63)')
        return value

    def address(self):
        try:
            return str(ipaddress.ip_address(self.text()))
        except ValueError:
            self.refuse('', self._value, 'an IPv4 or IPv6 address')

    def number(self, key, *, low, high=math.inf, default=_MISSING):
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            most = '' if math.isinf(high) else f' and at most {high:g}'
            self.refuse(key, value, f'a number of at least {low:g}{most}')
        return float(value)

    def whole(self, key, *, low, high=math.inf, default=_MISSING):
        value = self.number(key, low=low, high=high, default=default)
        if value != int(value):
            self.refuse(key, value, 'a whole number')
        return int(value)

    def items(self, key, read, *, most=100, default=_MISSING):
        """A list of at least one item, each read by `read(_Object)`; a tuple."""
        value = self.take(key, default)
        if value is default:
            return value
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            self.refuse(key, value, f'a list of 1 to {most}')
        return tuple(read(_Object(item, f'{self._at(key)}[{number}]')) for number, item in enumerate(value))
