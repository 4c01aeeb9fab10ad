# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload is: a name, checked parameters, the users it wants, and a coroutine that makes the requests."""
import collections
import dataclasses
import math
import textwrap

from ...base.errors import TrialError


#: {kind: (types that a value may have, in JSON or as text; how it is read; in words)}. A bool is not a number here.
KINDS = {'integer': ((int, str), int, 'a whole number'), 'number': ((int, float, str), float, 'a number'),
         'text': ((str,), str, 'a text'),
         'yes/no': ((bool, str), {True: True, False: False, 'yes': True, 'no': False}.__getitem__, 'yes or no')}
NUMBERS = ('integer', 'number')


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a workload. kind: one of KINDS; low <= value <= high for numbers."""
    name: str
    kind: str
    default: object
    unit: str
    help: str
    low: float = -math.inf
    high: float = math.inf

    def read(self, value):
        """`value`, as JSON has it or as text from a command line, checked. Raises TrialError."""
        types, convert, _ = KINDS[self.kind]
        try:
            read = convert(value) if type(value) in types else None
        except (KeyError, ValueError):
            read = None
        if read is None or self.kind in NUMBERS and not (self.low <= read <= self.high and math.isfinite(read)):
            raise TrialError(f'{self.name}: {value!r} is not {self.allowed()}')
        return read

    def allowed(self):
        """In words: what the value may be."""
        noun, unit = KINDS[self.kind][2], f' {self.unit}' if self.unit else ''
        if self.kind not in NUMBERS:
            return noun
        if math.isinf(self.high):
            return f'{noun} of at least {self.low:g}{unit}'
        return f'{noun} from {self.low:g} to {self.high:g}{unit}'

    def describe(self):
        """The text of --help."""
        default = ('no', 'yes')[self.default] if self.kind == 'yes/no' else self.default
        text = f'{self.help}: {self.allowed()}'
        return '\n'.join([f'  {self.name}={default}', *textwrap.wrap(text, 100, initial_indent=' ' * 6,
                                                                    subsequent_indent=' ' * 6)])


@dataclasses.dataclass(frozen=True)
class CbrStream:
    """UDP at a constant rate beside the workload: `rate_bps` of frames in `bursts`, the (start, end) of each in s since
    t0. receiver: the number of the user that it goes to; None: to an address behind the gateway that no user has. frame:
    bytes of each, with headers. timed: whether the delay of each is recorded."""
    rate_bps: float
    bursts: tuple
    receiver: int = None
    frame: int = 1000
    timed: bool = False


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of the run in which the same classes make requests. after: what went wrong and ended when it began
    (LABELS and ENDS of base.disturbance), or what begins then and is judged while it lasts; if anything."""
    t_start: float
    t_end: float
    classes: tuple
    label: str
    after: str = ''


def numbered(users):
    """(number in its class, from 1, user) of each user."""
    seen = collections.Counter()
    for user in users:
        seen[user.cls] += 1
        yield seen[user.cls], user


def every_second(users):
    """Every second user of each class."""
    return tuple(user for number, user in numbered(users) if number % 2 == 0)


class Workload:
    """Base of all workloads; an instance has its parameters checked."""

    name = ''                #: as in the spec and on the command line
    summary = ''             #: one line
    profile = None           #: base.spec.Profile: what it is called in reports, and what its figures show
    parameters = ()          #: of Parameter
    via = None               #: how its requests go, see run.Run.fetch
    http3 = False            #: whether every second user of each class speaks HTTP/3, where QUIC is let through

    def __init__(self, values=None):
        """values: {name: value}; what is missing takes its default. Raises TrialError."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values or {}:
            if name not in known:
                allowed = ', '.join(known) or 'none'
                raise TrialError(f'{name}: workload {self.name} has no such parameter (it has: {allowed})')
        self.values = {name: parameter.read(values[name]) if values and name in values else parameter.default
                       for name, parameter in known.items()}

    def check(self):
        """Raises TrialError if something that the parameters name is not there or cannot be used."""

    def population(self, classes, per_class):
        """How many users each class should have: {class: users}. `classes`: names, the first is the paper's class 1."""
        return {name: per_class for name in classes}

    def whole_s(self):
        """How long a run must be to hold all that the parameters ask for, s; None: any length does."""
        return None

    def direct(self, _users):
        """Those of the users who bypass Squid."""
        return ()

    def quic_users(self, users):
        """Those of the users who speak HTTP/3."""
        return every_second(users) if self.http3 else ()

    def quic_downloads(self, _users, _servers):
        """The (user, server) of each download by QUIC to run beside, past Squid."""
        return ()

    def beside(self, _rate_bps, _duration_s):
        """The CbrStreams to run beside on a link of `_rate_bps` in a run of `_duration_s`."""
        return ()

    def disturbances(self, _duration_s):
        """The Disturbances of a run of `_duration_s`, in order, no two at a time."""
        return ()

    def tunnels(self):
        """Whether requests go over kept tunnels, which takes TLS on the whole way."""
        return self.via == 'h2'

    def phases(self, spec):
        """The run's phases, in order, without gaps."""
        return (Phase(0.0, spec.duration_s, spec.classes, 'all'),)

    def prepare(self, _offers):
        """Called once before the start, with the offers.Offers: reads files, draws arrivals. Raises TrialError.
        Returns what will be offered, for meta.json, or None where that depends on the answers."""
        return None

    async def run(self, run):
        """Makes requests on the run.Run until none may start and none is in flight. May be cancelled."""
        raise NotImplementedError
