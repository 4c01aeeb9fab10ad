# SPDX-License-Identifier: GPL-2.0-or-later
"""The specification of a cell, in the same types from the plan to the report: its Condition, further settings, and the
statement that it writes once it has run."""
import dataclasses
import json
import pathlib

from . import typed

#: A link of this rate takes one lane; a faster one has more packets to move and takes proportionally more.
LANE_BPS = 4e6
#: Set-up, lead and tear-down, on top of a cell's own seconds.
AROUND_S = 10.0
#: Kind of the requests that send a body, in requests.csv.
UPLOAD = 'upload'


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition under which several arms are compared."""

    workload: str
    arms: tuple[str, ...]       #: a cell has one
    duration_s: float           #: time in which requests start
    warmup_s: float             #: part of it that is recorded but not measured
    parameters: dict = dataclasses.field(default_factory=dict)      #: of the workload
    rate_bps: float = 2e6       #: C
    buffer_bdp: float = 1.5     #: the ISP's queue, in bandwidth-delay products
    drain_s: float = 0.0        #: wait for requests still in flight
    seed: int = 1
    counts: tuple[int, ...] | None = None       #: users of each class, by weight; None: by rate
    rtts_ms: tuple[float, ...] | None = None    #: of the servers; None: from the options
    trace: str | None = None    #: course of C around rate_bps: a name of site.link_trace, or a file; None: constant

    @property
    def arm(self):
        return self.arms[0]

    @property
    def lanes(self):
        return max(1, round(self.rate_bps / LANE_BPS))

    @property
    def wanted_s(self):
        """Approximate time a cell takes, s."""
        return self.duration_s + self.drain_s + AROUND_S

    def label(self):
        """Short name, unique among the conditions of a run; usable as a directory name."""
        said = ''.join(f'-{name}{value}' for name, value in sorted(self.parameters.items()))
        if self.counts:
            said += '-u' + '+'.join(map(str, self.counts))
        if self.rtts_ms:
            said += f'-{min(self.rtts_ms):g}ms' if len(set(self.rtts_ms)) == 1 else '-rtts'
        if self.trace:
            said += f'-{pathlib.PurePath(self.trace).name}'
        return f'{self.workload}{said}-{self.rate_bps / 1e6:g}M-{self.buffer_bdp:g}bdp-s{self.seed}'.replace('/', '_')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
    """Settings common to all cells of a run: the options of these names."""

    weights: dict[str, float]    #: class to weight, highest first
    squid: str                   #: program for the arms that need the patched one
    stock_squid: str             #: program for the others
    sizes: str | None = None     #: of the responses, in the syntax of load.traffic.sizes; None: the paper's
    distance: str = 'auto'       #: implementation of the delay, see site.delay
    delayline: str | None = None
    isp: str = 'tbf'             #: implementation of the bottleneck, see site.bottleneck
    hosts: str = 'namespaces'    #: fabric of the hosts, see site.fabrics
    workers: int = 1             #: per Squid
    gateways: int = 1            #: on the link, each with a Squid and a part of the users
    six_every: int = 4           #: every nth user has IPv6 only; 0: none
    tls_share: float = 0.0       #: share of the requests that use TLS
    at_once: bool = False        #: responses begin at once, and every request is answered; else as site.first_byte
    keep: bool = False           #: copy all files that the daemons wrote

    @classmethod
    def of(cls, options):
        return cls(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Setup)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellSpec(Setup, Condition):
    """Everything a cell needs to know; stored as JSON. `counts` and `rtts_ms` are filled in."""

    name: str                    #: also of its directory
    directory: str
    buffer_rtt_ms: float | None = None  #: RTT for the buffer's bandwidth-delay product; None: the servers' mean

    @classmethod
    def under(cls, condition, setup, **more):
        """A cell under a condition. more: fields that neither has, or overrides."""
        return cls(**{**vars(condition), **vars(setup), **more})

    def store(self, path):
        pathlib.Path(path).write_text(json.dumps(dataclasses.asdict(self), indent=1) + '\n')

    @classmethod
    def read(cls, path):
        """The spec in a file written by store(). Raises SpecError."""
        return typed.of(cls, typed.read(path), path)


@dataclasses.dataclass(frozen=True)
class Answer:
    """A workload's sentence for readers about a topic, of several clauses, each about one figure. The first
    clause also names the figures of other arms, and stands alone where there is little room."""

    topic: str                  #: one word
    clauses: dict[str, str]     #: a figure of analysis.answers, by name: its clause. FIGURE:first is that of the class
                                #: of the greatest weight. {} is the value, {first} that class, {weights} all weights


#: Answers of every workload whose profile is `saturated`, or has a `queue`.
FAIRNESS = Answer('Fairness', {'shares': 'with weights {weights}, bandwidth per user is {}'})
QUEUE = Answer('Queue', {'queue': "a packet waits {} in the provider's queue",
                         'drops': '{} of the packets are dropped'})


@dataclasses.dataclass(frozen=True)
class Profile:
    """Title of a workload in reports, and properties of its figures."""

    title: str
    rank: int = 1000            #: position among the workloads of a report, least first
    saturated: bool = False     #: all users are always backlogged: throughput shows the scheduler, not the demand
    shared: bool = False        #: traffic that bypasses Squid uses the link too
    latency: bool = False       #: whether request latencies are plotted
    queue: bool = False         #: whether the provider's queue is plotted
    processors: bool = False    #: the machine's processors are the limit, on purpose
    work: bool = False          #: whether unfinished work is known and judges an arm: open, pages, backlogged
    answers: tuple[Answer, ...] = ()    #: on what its users get

    def told(self):
        """All answers: `answers`, and those that follow from the other properties."""
        return (*self.answers, *((FAIRNESS,) if self.saturated else ()), *((QUEUE,) if self.queue else ()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stat:
    """The part of a cell's stat.json that the analysis uses; the file has more."""

    arm: str
    workload: str
    parameters: dict             #: all of the workload's
    rate_bps: float
    weights: dict[str, float]    #: class to weight, highest first
    users: dict[str, str]        #: user to class
    t_start: float               #: start and end of the measured interval, s since t0
    t_stop: float
    rtts_ms: tuple[float, ...]
    buffer_bdp: float
    buffer_bytes: float
    seed: int
    versions: dict               #: of the programs that took part
    squid_conf: str
    squid_is_stock: bool = False        #: whether Squid was the unpatched program
    trace: str | None = None            #: course of C, with mean rate_bps; None: constant
    gateways: int = 1                   #: on the link
    at_once: bool = True                #: see Setup; files of old runs do not have it
    profile: Profile | None = None      #: of its workload; missing in files of old runs

    @classmethod
    def read(cls, path):
        """The Stat in a stat.json. Raises SpecError."""
        told = typed.of(cls, typed.read(path), path, unknown=True)
        told = dataclasses.replace(told, profile=told.profile or Profile(told.workload))
        for user, name in told.users.items():
            if name not in told.weights:
                typed.refuse(f'{path}: users.{user}', name, 'one of ' + ', '.join(told.weights))
        for name in (name for name, weight in told.weights.items() if not weight > 0):
            typed.refuse(f'{path}: weights.{name}', told.weights[name], 'above 0')
        if not told.rate_bps > 0:
            typed.refuse(f'{path}: rate_bps', told.rate_bps, 'above 0')
        if not told.t_stop > told.t_start >= 0:
            typed.refuse(f'{path}: t_stop', told.t_stop, f'after t_start, {told.t_start:g}')
        return told
