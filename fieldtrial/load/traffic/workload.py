# SPDX-License-Identifier: GPL-2.0-or-later
"""The base of workloads: a name, checked parameters, the users it needs, and a coroutine that makes the requests."""
import collections
import dataclasses
import math
import textwrap

from ...base.errors import TrialError


#: {kind: (types of a value, in JSON or as text; conversion; description)}. A bool is not a number here.
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
        """`value`, from JSON or as text from a command line, converted and checked. Raises TrialError."""
        types, convert, _ = KINDS[self.kind]
        try:
            read = convert(value) if type(value) in types else None
        except (KeyError, ValueError):
            read = None
        if read is None or self.kind in NUMBERS and not (self.low <= read <= self.high and math.isfinite(read)):
            raise TrialError(f'{self.name}: {value!r} is not {self.allowed()}')
        return read

    def allowed(self):
        """The allowed values, as text."""
        noun, unit = KINDS[self.kind][2], f' {self.unit}' if self.unit else ''
        if self.kind not in NUMBERS:
            return noun
        if math.isinf(self.high):
            return f'{noun} of at least {self.low:g}{unit}'
        return f'{noun} from {self.low:g} to {self.high:g}{unit}'

    def describe(self):
        default = ('no', 'yes')[self.default] if self.kind == 'yes/no' else self.default
        text = f'{self.help}: {self.allowed()}'
        return '\n'.join([f'  {self.name}={default}', *textwrap.wrap(text, 100, initial_indent=' ' * 6,
                                                                    subsequent_indent=' ' * 6)])


@dataclasses.dataclass(frozen=True)
class CbrStream:
    """UDP at a constant rate next to the workload: `rate_bps` of frames in `bursts`, the (start, end) of each in s
    since t0. receiver: the number of the user that receives it; None: an address behind the gateway that no user has.
    frame: bytes of each frame, with headers. timed: whether the delay of each is recorded."""
    rate_bps: float
    bursts: tuple
    receiver: int = None
    frame: int = 1000
    timed: bool = False


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of the run in which the same classes make requests. after: the disturbance that ended when it began
    (LABELS and ENDS of base.disturbance), or one that begins then and is judged while it lasts; if any."""
    t_start: float
    t_end: float
    classes: tuple
    label: str
    after: str = ''


def numbered(users):
    """Yields (number in its class, from 1, user) for each user."""
    seen = collections.Counter()
    for user in users:
        seen[user.cls] += 1
        yield seen[user.cls], user


def every_second(users):
    """Every second user of each class."""
    return tuple(user for number, user in numbered(users) if number % 2 == 0)


class Workload:
    """Base of all workloads; an instance has its parameters checked."""

    name = ''                #: in the spec and on the command line
    summary = ''             #: one line
    profile = None           #: base.spec.Profile: its title in reports, and properties of its figures
    parameters = ()          #: of Parameter
    via = None               #: how its requests are sent, see run.Run.fetch
    bumped = False           #: whether Squid decrypts TLS
    conversations = False    #: whether it needs the servers of load.internet
    http3 = False            #: whether every second user of each class speaks HTTP/3, where QUIC is allowed

    def __init__(self, values=None):
        """values: {name: value}; missing parameters take their defaults. Raises TrialError."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values or {}:
            if name not in known:
                allowed = ', '.join(known) or 'none'
                raise TrialError(f'{name}: workload {self.name} has no such parameter (it has: {allowed})')
        self.values = {name: parameter.read(values[name]) if values and name in values else parameter.default
                       for name, parameter in known.items()}

    def check(self):
        """Raises TrialError if something that the parameters refer to is missing or unusable."""

    def population(self, classes, per_class):
        """How many users each class should have: {class: users}. `classes`: names, the first is the paper's class 1."""
        return {name: per_class for name in classes}

    def whole_s(self):
        """Length of a run that holds everything the parameters ask for, s; None: any length will do."""
        return None

    def direct(self, _users):
        """The users who bypass Squid."""
        return ()

    def quic_users(self, users):
        """The users who speak HTTP/3."""
        return every_second(users) if self.http3 else ()

    def quic_downloads(self, _users, _servers):
        """The (user, server) of each background download by QUIC, which bypasses Squid."""
        return ()

    def browsers(self, _users):
        """The users who have a browser (browsing.py) for the web pages of the servers."""
        return ()

    def beside(self, _rate_bps, _duration_s):
        """The background CbrStreams on a link of `_rate_bps` in a run of `_duration_s`."""
        return ()

    def disturbances(self, _duration_s):
        """The Disturbances of a run of `_duration_s`, in order, no two at a time."""
        return ()

    def tunnels(self):
        """Whether requests use persistent tunnels, which requires TLS end to end."""
        return self.via == 'h2'

    def encrypts(self):
        """Whether requests use TLS whatever --tls-share is."""
        return self.tunnels() or self.via == 'https'

    def phases(self, spec):
        """The run's phases, in order, without gaps."""
        return (Phase(0.0, spec.duration_s, spec.classes, 'all'),)

    def prepare(self, _offers):
        """Called once before the start, with the offers.Offers: reads files, draws arrivals. Raises TrialError.
        Returns the offered load, for meta.json, or None if it depends on the responses."""
        return None

    async def run(self, run):
        """Makes requests on the run.Run until no more may start and none is in flight. May be cancelled."""
        raise NotImplementedError
