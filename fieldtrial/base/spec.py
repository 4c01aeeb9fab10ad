# SPDX-License-Identifier: GPL-2.0-or-later
"""What is run, in one type from the plan to the report: a Condition, what a cell is told beside it, and what it says of
itself once it has run."""
import dataclasses
import json
import pathlib

from . import typed

#: A link of this rate takes one lane; a faster one, with more packets to move, as many more as it is faster.
LANE_BPS = 4e6
#: Setting up, the lead and taking down, beside a cell's own seconds.
AROUND_S = 10.0


@dataclasses.dataclass(frozen=True)
class Condition:
    """What several arms are compared under."""

    workload: str
    arms: tuple[str, ...]       #: a cell has one of them
    duration_s: float           #: in which requests start
    warmup_s: float             #: of it, not measured, but recorded
    parameters: dict = dataclasses.field(default_factory=dict)      #: of the workload
    rate_bps: float = 2e6       #: C
    buffer_bdp: float = 1.5     #: the ISP's queue, in bandwidth-delay products
    drain_s: float = 0.0        #: waited for what is still in flight
    seed: int = 1
    counts: tuple[int, ...] | None = None       #: users of each class, by weight; None: as many as the rate wants
    rtts_ms: tuple[float, ...] | None = None    #: of the servers; None: those that the options say
    trace: str | None = None    #: what C does around rate_bps: a name of site.link_trace, or a file; None: it stays

    @property
    def arm(self):
        """That of a cell."""
        return self.arms[0]

    @property
    def lanes(self):
        """How many lanes a cell takes."""
        return max(1, round(self.rate_bps / LANE_BPS))

    @property
    def wanted_s(self):
        """About how long a cell takes."""
        return self.duration_s + self.drain_s + AROUND_S

    def label(self):
        """Short and unique among the conditions of a run; good for a directory's name."""
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
    """What all cells of a run are told alike: the options of these names."""

    weights: dict[str, float]    #: class to weight, highest first
    squid: str                   #: program for the arms that need the patched one
    stock_squid: str             #: program for the others
    sizes: str | None = None     #: of the responses, as load.traffic.sizes reads it; None: the paper's
    distance: str = 'auto'       #: what makes it, see site.delay
    delayline: str | None = None
    isp: str = 'tbf'             #: what makes the link slow, see site.bottleneck
    hosts: str = 'namespaces'    #: what they are made of, see site.fabrics
    workers: int = 1             #: of every Squid
    gateways: int = 1            #: on the link, each with a Squid and some of the users
    six_every: int = 4           #: every so many users have IPv6 only; 0: none
    tls_share: float = 0.0       #: share of the requests that are made with TLS
    keep: bool = False           #: copy everything that the daemons wrote

    @classmethod
    def of(cls, options):
        """That of the options."""
        return cls(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Setup)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellSpec(Setup, Condition):
    """Everything a cell needs to know; stored as JSON. `counts` and `rtts_ms` are filled in."""

    name: str                    #: also its directory's
    directory: str
    buffer_rtt_ms: float | None = None  #: of a bandwidth-delay product of the buffer; None: the servers' mean

    @classmethod
    def under(cls, condition, setup, **more):
        """A cell of a condition. more: what neither says, or says less of."""
        return cls(**{**vars(condition), **vars(setup), **more})

    def store(self, path):
        """Writes it to a file."""
        pathlib.Path(path).write_text(json.dumps(dataclasses.asdict(self), indent=1) + '\n')

    @classmethod
    def read(cls, path):
        """That of such a file. Raises SpecError."""
        return typed.of(cls, typed.read(path), path)


@dataclasses.dataclass(frozen=True)
class Profile:
    """What a workload is called in reports, and what its figures show."""

    title: str
    rank: int = 1000            #: its place among the workloads of a report, least first
    saturated: bool = False     #: every user always wants more: throughput shows the scheduler, not the demand
    shared: bool = False        #: others than those whom Squid serves have some of the link
    latency: bool = False       #: whether the latencies of its requests are drawn
    queue: bool = False         #: whether the provider's queue is drawn
    processors: bool = False    #: the machine's processors are the limit, on purpose
    work: bool = False          #: whether unfinished work is known and judges an arm: open, pages, backlogged


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stat:
    """What stat.json says of a cell that has run, as far as the analysis asks; the file has more."""

    arm: str
    workload: str
    parameters: dict             #: all of the workload's
    rate_bps: float
    weights: dict[str, float]    #: class to weight, highest first
    users: dict[str, str]        #: user to class
    t_start: float               #: where the measured interval begins and ends, s since t0
    t_stop: float
    rtts_ms: tuple[float, ...]
    buffer_bdp: float
    buffer_bytes: float
    seed: int
    versions: dict               #: what took part
    squid_conf: str
    squid_is_stock: bool = False        #: whether Squid was the unpatched program
    trace: str | None = None            #: what C did, with rate_bps on average; None: it stayed
    gateways: int = 1                   #: on the link
    profile: Profile | None = None      #: that of its workload; in files of old runs it is missing

    @classmethod
    def read(cls, path):
        """That of such a file. Raises SpecError."""
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
