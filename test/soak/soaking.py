# SPDX-License-Identifier: GPL-2.0-or-later
"""One soak: a world, a gateway and its neighbours, a crowd, disturbances, and the evaluation at the end."""
import collections
import contextlib
import math
import threading
import time
from dataclasses import dataclass, field

import memory
import troubles
import visits
from background import Loop
from crowd import Crowd
from datagrams import Datagrams
from fieldtrial.site.netns import temporary_directory
from fieldtrial.site.world import World
from gateway import Gateway
from http_users import Users
from installation import installation
from neighbours import Edge, Party, another_gateway
from scripted_origin import ScriptedOrigin, make_certificate

RTTS_MS = (10.0, 40.0, 120.0)
SAMPLE_S, TELL_S = 5.0, 60.0
#: s. A reset that the link loses is not repeated, so that Squid waits for its server this long. It is longer than a
#: reader stalls on a busy machine, and than a server is silent that missed the opening of its window.
READ_TIMEOUT_S = 180
#: s within which everything under way at the end must complete: Squid may try twice.
PATIENCE = 2 * READ_TIMEOUT_S + 60.0
WORKERS = 2
#: The worker that is killed, from 0: the leader, which has the socket of msfrs_excess. The other one runs throughout,
#: so that its memory can be evaluated.
VICTIM, SURVIVOR = 0, '(squid-2)'
#: client_db, Squid's own record of each address, would grow for a day.
SQUID = 'max_filedescriptors 16384', 'client_db off', f'read_timeout {READ_TIMEOUT_S} seconds'
#: s for which msfrs remembers the user of an address: its tables grow with the users of that time.
REMEMBERED_S = 600.0
#: Seconds of the link's rate that a worker may have charged since its last report.
UNSAID_S = 0.5
#: s within which a live worker has logged a visit after its user saw it end.
NOTICED_S = 60.0
CUT = 'cut with a killed worker'
#: Lines in the log of a daemon for each restart of any process: more would be a flood.
LINES = 12


@dataclass(frozen=True)
class Soak:
    """Parameters. load: fraction of the link's rate, as bodies; reconfigure_s, falter_s, kill_s: periods of these
    events; party: msfrs-edge is a party of the ledger, and does not report bypassing traffic to Squid."""
    seconds: float
    users: int
    rate_bps: float
    load: float = 0.7
    reconfigure_s: float = 60.0
    falter_s: float = 300.0
    kill_s: float = 300.0
    seed: int = 1
    party: bool = False

    @property
    def visits_per_second(self):
        mean = visits.SIZE['median'] * math.exp(visits.SIZE['sigma'] ** 2 / 2)
        return self.load * self.rate_bps / 8 / mean


@dataclass
class Found:
    figures: dict = field(default_factory=dict)
    wrong: list = field(default_factory=list)   #: descriptions of faults

    def expect(self, true, sentence):
        if not true:
            self.wrong.append(sentence)

    @contextlib.contextmanager
    def expecting(self, what):
        """An assertion that fails within the block is a fault found, and does not end the soak."""
        try:
            yield
        except AssertionError as failure:
            self.wrong.append(f'{what}: {failure}')

    def lines(self):
        yield from (f'{name}: {value}' for name, value in self.figures.items())
        yield from (f'wrong: {sentence}' for sentence in self.wrong)
        yield 'The soak found nothing wrong.' if not self.wrong else f'The soak found {len(self.wrong)} things wrong.'


def soak(parameters, say=lambda text: None):
    """Runs a soak; returns its Found."""
    found = Found()
    counts = [parameters.users // 3 + (number < parameters.users % 3) for number in range(3)]
    with contextlib.ExitStack() as stack:
        installed = stack.enter_context(installation())
        directory = stack.enter_context(temporary_directory())
        certificates = {name: f'{directory}/{name}.pem' for name in ('origin', 'gateway')}
        for name, path in certificates.items():
            make_certificate(path, f'{name}.test')
        say(f'{parameters.users} users, {parameters.visits_per_second:.1f} visits a second')
        world = stack.enter_context(World(rate_bps=parameters.rate_bps, rtts_ms=RTTS_MS, users=counts,
                                          workers=WORKERS))
        loop = stack.enter_context(Loop())
        users = stack.enter_context(contextlib.closing(Users(loop, world)))
        ScriptedOrigin(loop, world.farm, certificates['origin'])
        gateway = Gateway(world, installed, certificates['gateway'])
        edge = (Party if parameters.party else Edge)(world)
        gateway.early = (*SQUID, edge.line)
        gateway.start()
        gateway.intercept_tls()
        share, _ = stack.enter_context(another_gateway(gateway, directory))
        _Soaking(parameters, found, gateway, edge, share, say).run(users, Datagrams(loop, world))
        code = gateway.stop()
        found.expect(code == 0, f'Squid ended with exit code {code}')
        with found.expecting('logs'):
            gateway.check()
    return found


class _Soaking:
    """The time between start and end of Squid."""

    def __init__(self, parameters, found, gateway, edge, share, say):
        self._parameters, self._found, self._say = parameters, found, say
        self._gateway, self._edge, self._share = gateway, edge, share
        self._sizes = memory.Sizes()
        self._unknown = 0       # bytes charged by killed workers
        self._excess = collections.Counter()    # including killed workers
        self._began = time.monotonic()
        alone = threading.Lock()    # both count the reopened ports in cache.log
        self._anew = troubles.Reconfigurations(gateway, self._began, parameters.reconfigure_s, alone)
        self._link = troubles.Link(gateway.world, self._began, parameters.falter_s)
        self._sampling = troubles.Sampling(self._began, SAMPLE_S, self._sample)
        self._killings = troubles.Killings(self._began, parameters.kill_s, {
            'worker': self._kill_worker, 'edge': edge.kill, 'share': share.kill}, alone)

    def run(self, users, beside):
        def ask(user, how):
            if how['via'] == visits.BESIDE:
                return beside.get(user, **{name: value for name, value in how.items() if name != 'via'})
            return users.get(user, **how)
        world = self._gateway.world
        self._crowd = Crowd(ask, visits.Plan(world.users, self._parameters.visits_per_second, self._parameters.seed,
                                             len(RTTS_MS)), self._excuse)
        self._held = self._in_use()
        with self._gateway.received() as link:
            before = link.read()
            with self._anew, self._link, self._killings, self._sampling:
                self._crowd.run(self._began + self._parameters.seconds, self._watch)
            self._left = self._crowd.go(PATIENCE)
            with self._found.expecting('at rest'):
                self._gateway.rest()
            self._judge_visits()
            self._judge_troubles()
            self._judge_memory()
            self._judge_counters(link.read() - before)

    def _kill_worker(self):
        self._note_excess()
        self._unknown += self._gateway.kill_worker(self._share.segment, VICTIM)

    def _note_excess(self):
        counts = self._gateway.report()['excess']
        self._excess.update({name: counts[name] for name in ('lines', 'bytes', 'no_class_bytes', 'refused_lines')})

    def _excuse(self, fetch):
        # Whether the killed worker had the request is decided at the end, when no log has it.
        broken = isinstance(fetch.error, (OSError, EOFError)) and fetch.path != visits.BESIDE
        return CUT if broken and self._killings.during('worker', fetch.t_start, fetch.t_end) else ''

    def _watch(self):
        since = time.monotonic() - self._began
        if since >= TELL_S * self._told:
            self._told += 1
            self._say(f'{since / 60:.0f} min: {self._crowd.ended.total()} visits, {self._crowd.wrong} wrong, '
                      f'kB {self._sizes.last()}')
        for words in self._crowd.words[self._said:]:
            self._say(f'wrong: {words}')
        self._said = len(self._crowd.words)

    def _sample(self):
        with contextlib.suppress(OSError):      # a process was killed a moment ago
            self._sizes.sample({**self._gateway.processes(), self._edge.pid: 'msfrs-edge',
                                self._share.pid: 'msfrs-share'})

    _told, _said = 1, 0

    def _judge_visits(self):
        """Only requests aborted by a user, a server or the kill of a worker may be incomplete."""
        crowd, found = self._crowd, self._found
        # Intercepted TLS has an additional line for its start, which a worker may have written before it was killed.
        # Port numbers are reused: a line belongs to the visit if both ended at the same time.
        logged, clock = collections.defaultdict(list), time.time() - time.monotonic()
        for row in self._gateway.access_log():
            if (row['method'], row['tag']) != ('CONNECT', 'NONE_NONE'):
                logged[row['client'], row['port']].append((float(row['time']) - clock, row))
        for visit in crowd.excused[CUT][:]:
            address = visit.user.v4 if visit.how['family'] == 4 else visit.user.v6
            if row := next((row for ended, row in logged[address, str(visit.fetch.port)]
                            if visit.fetch.t_start <= ended <= visit.fetch.t_end + NOTICED_S), None):
                crowd.excused[CUT].remove(visit)
                crowd.blame(visit, f'a worker that lived had it: {visit.wrong()}, {row}')
        found.figures |= {
            'visits': crowd.ended.total(), 'by kind': dict(crowd.ended),
            CUT: len(crowd.excused[CUT]), 'turned away': crowd.turned_away,
            'wrong': crowd.wrong}
        found.expect(not crowd.wrong, f'{crowd.wrong} visits went wrong:\n' + '\n'.join(crowd.words))
        found.expect(not self._left, f'{len(self._left)} visits did not end within {PATIENCE:g} s after the last had '
                     f'come: {[self._story(visit) for visit in self._left[:5]]}')
        found.expect(crowd.ended.total() > 0, 'nobody came')

    def _story(self, visit):
        """A visit that has not ended, with the gateway's state of its connection."""
        filtered = ('dport', '=', f':{visit.fetch.port}')
        known = self._gateway.world.gateway.run('ss', '-Htanpo', *filtered) if visit.fetch.port else 'no connection'
        return visit.kind, visit.user.name, visit.how, visit.fetch, known.split()

    def _judge_troubles(self):
        found = self._found
        for each in (self._anew, self._link, self._killings, self._sampling):
            found.expect(not each.failure, f'{type(each).__name__}: {each.failure!r}')
        kills = {name: len(times) for name, times in self._killings.times.items()}
        said = {'msfrs-edge': len(self._edge.said()), 'msfrs-share': len(self._share.said())}
        found.figures |= {
            'reconfigurations': self._anew.done, 'falterings of the link': self._link.done, 'kills': kills,
            'longest until another was there, s': self._killings.longest(), 'lines in logs': said}
        for name, lines in said.items():
            found.expect(lines <= LINES * (1 + sum(kills.values())), f'{name} said {lines} lines')

    def _judge_memory(self):
        found, growths = self._found, self._sizes.growths()
        judged = self._parameters.seconds * memory.WARM_UP >= REMEMBERED_S
        found.figures |= {
            'own memory at the end of each life, kB': self._sizes.last(),
            f'growth after the warm-up, of those who lived throughout{"" if judged else " (too short to judge)"}': {
                name: grown if grown is None else f'{100 * grown:.1f} %' for name, grown in growths.items()}}
        for name, grown in growths.items() if judged else ():
            found.expect(grown is None or grown <= memory.GROWTH, f'memory of {name} grew by '
                         f'{100 * (grown or 0):.1f} % after the warm-up; allowed is {100 * memory.GROWTH:g} %')
        held, began = self._in_use(), time.monotonic()
        while memory.more(held, self._held) and time.monotonic() < began + PATIENCE:
            time.sleep(1)
            held = self._in_use()
        found.figures |= {'objects in use at rest, of each worker': held,
                          'until they were given back, s': round(time.monotonic() - began)}
        for kid, pools in memory.more(held, self._held).items():
            found.expect(False, f'worker {kid} has not given back, at rest: {pools}; before anybody came: '
                         f'{self._held[kid]}')
        found.expect(SURVIVOR in growths, f'{SURVIVOR} did not live throughout: {list(growths)} did')

    def _in_use(self):
        """memory.in_use() of every worker. The others do not query a worker that has just been started."""
        def of_all():
            found = memory.in_use(self._gateway.page('mem'))
            return len(found) == WORKERS and found
        return self._gateway.wait_until(of_all, f'mgr:mem has {WORKERS} workers')

    def _judge_counters(self, brought):
        """The workers are idle, and their counters agree with the bytes of users and of the link."""
        found, report = self._found, self._gateway.report()
        workers = [party for party in report['parties'] if party['kind'] == 'worker']
        found.figures['W of each worker at rest'] = [party['outstanding'] for party in workers]
        found.expect([(party['live'], party['outstanding']) for party in workers] == [(True, 0)] * WORKERS,
                     f'at rest: {workers}')
        beside = self._crowd.received.pop(visits.BESIDE, 0)
        got = self._crowd.received.total()
        counted = sum(row['bytes'] + row['excess'] for row in report['classes']) + self._unknown
        self._note_excess()
        found.figures |= {
            'bytes of bodies through Squid': got, 'beside it': beside, 'charged to classes': counted,
            'of these by killed workers': self._unknown, 'brought by the link': brought,
            'excess': dict(self._excess)}
        unsaid = len(self._killings.times['worker']) * UNSAID_S * self._parameters.rate_bps / 8
        found.expect(got - unsaid <= counted <= brought,
                     f'users got {got} bytes through Squid, {counted} were charged, and the link brought {brought}')
        found.expect(self._excess['refused_lines'] == 0, f'lines of msfrs-edge were refused: {dict(self._excess)}')
        if self._parameters.party:
            found.expect(any(party['kind'] == 'edge' and party['live'] for party in report['parties']),
                         f'msfrs-edge is no party: {report["parties"]}')
        else:
            found.expect(beside == 0 or self._excess['bytes'] > 0, 'nothing beside Squid was charged')
