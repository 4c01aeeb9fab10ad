# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation with a sequence of bounded disturbances: are the shares right again after each of them?

Each kind has its parameters (`--help`); `site/disturb.py` makes those of the provider and the servers. Otherwise the
load is that of `https-backlogged`, or in part that of `backlogged`, with all users always backlogged. The shares of the
classes are judged from 10 to 20 s after the end of a disturbance. An outage is shorter than 10 s: TCP's retransmission
timer doubles with each attempt, so after a longer outage a sender stays silent for as long again, whatever the gateway
does.
"""
import asyncio

from ...base.spec import Profile
from ...base.disturbance import ENDS, LABELS, RECOVERED_S, Disturbance
from ...base.errors import TrialError
from ..traffic import closed, idle
from ..traffic.workload import CbrStream, Parameter, Phase, Workload


def _or(names):
    *others, last = names
    return f'{", ".join(others)} or {last}'


def _length(kind, default, what):
    return Parameter(f'{kind}_s', 'number', default, 's', f'how long {what}; 0: not at all', low=0.0, high=600.0)


class Disturbed(Workload):
    """A closed loop of every user, over tunnels and plain, during disturbances."""

    name = 'disturbed'
    summary = 'saturated, while the link loses half its rate, goes down, a burst of UDP comes, servers stall, idle ' \
              'tunnels come and go'
    profile = Profile('Disturbed', rank=40, saturated=True, shared=True)
    parameters = closed.PARAMETERS[:1] + (
        Parameter('http2', 'number', 1.0, '', 'share of the requests in flight that go over kept tunnels; the others '
                  'are plain HTTP/1', low=0.0, high=1.0),
        Parameter('repeat', 'integer', 1, 'times', 'how often everything happens, one round after the other', low=1,
                  high=100),
        Parameter('only', 'text', '', '', f'the one disturbance that happens, {_or(LABELS)}; empty: all'),
        Parameter('first_s', 'number', 50.0, 's', 'when the first disturbance begins', low=1.0, high=3600.0),
        Parameter('calm_s', 'number', 25.0, 's', 'from the end of one to the beginning of the next', low=RECOVERED_S,
                  high=3600.0),
        _length('rate', 30.0, 'the link is slower'),
        Parameter('rate', 'number', 0.5, '', 'what the slower link carries, as a share of C', low=0.05, high=0.95),
        _length('down', 8.0, 'the link is down'),
        _length('cbr', 20.0, 'the burst lasts'),
        Parameter('cbr', 'number', 0.5, '', 'rate of the burst, as a share of C', low=0.01, high=0.95),
        _length('stall', 15.0, 'servers stall'),
        _length('tunnels', 20.0, 'idle tunnels stay open'),
        Parameter('tunnels', 'integer', 200, 'tunnels', 'how many idle tunnels, of all users together', low=1,
                  high=2000),
        _length('store', 0.0, 'the store between several gateways (--gateways) says nothing'))

    def check(self):
        if self.values['only'] not in ('', *LABELS):
            raise TrialError(f'workload disturbed: only: {self.values["only"]!r} is not {_or(LABELS)}')
        if self.values['only'] and not self.values[f'{self.values["only"]}_s']:
            raise TrialError('workload disturbed: only: {0} happens for 0 s; see {0}_s'.format(self.values['only']))

    def _every(self):
        """All disturbances that the parameters ask for, however long they take."""
        begin = self.values['first_s']
        for kind, label in self.values['repeat'] * tuple(LABELS.items()):
            end = begin + (self.values[f'{kind}_s'] if self.values['only'] in ('', kind) else 0.0)
            if end > begin:
                yield Disturbance(kind, label, begin, end, self.values.get(kind, 0.0))
                begin = end + self.values['calm_s']

    def whole_s(self):
        return max((each.t_end + RECOVERED_S for each in self._every()), default=None)

    def disturbances(self, duration_s):
        """See Workload. The last ones are left out if they and their recovery time do not fit into the run."""
        found = [each for each in self._every() if each.t_end + RECOVERED_S <= duration_s]
        if not found:
            raise TrialError(f'workload disturbed: no disturbance fits into {duration_s:g} s; the first begins at '
                             f'{self.values["first_s"]:g} s (first_s) and {RECOVERED_S:g} s are judged after it')
        return tuple(found)

    def tunnels(self):
        return round(self.values['http2'] * self.values['inflight']) > 0 or self.values['tunnels_s'] > 0

    def beside(self, rate_bps, duration_s):
        bursts = tuple((each.t_start, each.t_end) for each in self.disturbances(duration_s) if each.kind == 'cbr')
        return (CbrStream(self.values['cbr'] * rate_bps, bursts),) if bursts else ()

    def phases(self, spec):
        """See Workload: before, during and after each disturbance."""
        found, end, after = [], 0.0, ''
        for each in self.disturbances(spec.duration_s):
            found += [Phase(end, each.t_start, spec.classes, f'after {after}' if after else 'before', after),
                      Phase(each.t_start, each.t_end, spec.classes, each.label, _judged(each))]
            end, after = each.t_end, ENDS.get(each.kind, each.label)
        return (*found, Phase(end, spec.duration_s, spec.classes, f'after {after}', after))

    async def run(self, run):
        inflight, phases = self.values['inflight'], self.phases(run.spec)
        over_tunnels = round(self.values['http2'] * inflight)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(closed.run(run, inflight, 0.0, phases,
                                         via=lambda slot: 'h2' if slot < over_tunnels else None))
            for each in self.disturbances(run.spec.duration_s):
                if each.kind == 'tunnels':
                    tasks.create_task(idle.hold(run, _dealt(each.value, run.spec.users), each.t_start, each.t_end))


def _judged(each):
    """The label of a disturbance's own phase, if it is long enough to be judged."""
    return each.label if each.kind in ENDS and each.t_end - each.t_start >= RECOVERED_S else ''


def _dealt(count, users):
    """{user: number of `count` items}, dealt evenly."""
    return {user: count // len(users) + (number < count % len(users)) for number, user in enumerate(users)}
