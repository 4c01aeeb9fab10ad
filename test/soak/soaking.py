# SPDX-License-Identifier: GPL-2.0-or-later
"""One soak: a world, a gateway, a crowd and its troubles, and the judgement at the end."""
import contextlib
import math
import time
from dataclasses import dataclass, field

import memory
import troubles
import visits
from background import Loop
from crowd import Crowd
from fieldtrial.site.netns import temporary_directory
from fieldtrial.site.world import World
from gateway import Gateway
from http_users import Users
from installation import installation
from scripted_origin import ScriptedOrigin, make_certificate

RTTS_MS = (10.0, 40.0, 120.0)
SAMPLE_S, TELL_S = 5.0, 60.0
#: Seconds in which all that is under way at the end must be over.
PATIENCE = 120.0


@dataclass(frozen=True)
class Soak:
    """Parameters. load: of the link's rate, as bodies; reconfigure_s, falter_s: how often that happens."""
    seconds: float
    users: int
    rate_bps: float
    load: float = 0.7
    reconfigure_s: float = 60.0
    falter_s: float = 300.0
    seed: int = 1

    @property
    def visits_per_second(self):
        mean = visits.SIZE['median'] * math.exp(visits.SIZE['sigma'] ** 2 / 2)
        return self.load * self.rate_bps / 8 / mean


@dataclass
class Found:
    figures: dict = field(default_factory=dict)
    wrong: list = field(default_factory=list)   #: sentences

    def expect(self, true, sentence):
        if not true:
            self.wrong.append(sentence)

    def lines(self):
        yield from (f'{name}: {value}' for name, value in self.figures.items())
        yield from (f'wrong: {sentence}' for sentence in self.wrong)
        yield 'The soak found nothing wrong.' if not self.wrong else f'The soak found {len(self.wrong)} things wrong.'


def soak(parameters, say=lambda text: None):
    """Runs it; Found."""
    found = Found()
    counts = [parameters.users // 3 + (number < parameters.users % 3) for number in range(3)]
    with contextlib.ExitStack() as stack:
        installed = stack.enter_context(installation())
        directory = stack.enter_context(temporary_directory())
        certificates = {name: f'{directory}/{name}.pem' for name in ('origin', 'gateway')}
        for name, path in certificates.items():
            make_certificate(path, f'{name}.test')
        say(f'{parameters.users} users, {parameters.visits_per_second:.1f} visits a second')
        world = stack.enter_context(World(rate_bps=parameters.rate_bps, rtts_ms=RTTS_MS, users=counts))
        loop = stack.enter_context(Loop())
        users = stack.enter_context(contextlib.closing(Users(loop, world)))
        ScriptedOrigin(loop, world.farm, certificates['origin'])
        gateway = Gateway(world, installed, certificates['gateway'])
        gateway.start('max_filedescriptors 16384')
        gateway.intercept_tls()
        _under_load(parameters, world, gateway, users, found, say)
        _at_rest(gateway, found)
        code = gateway.stop()
        found.expect(code == 0, f'Squid ended with exit code {code}')
        try:
            gateway.check()
        except AssertionError as harm:
            found.wrong.append(f'logs: {harm}')
    return found


def _under_load(parameters, world, gateway, users, found, say):
    crowd = Crowd(users, visits.Plan(world.users, parameters.visits_per_second, parameters.seed, len(RTTS_MS)),
                  gateway.came_while_closed)
    t0 = time.monotonic()
    sizes, told = [], [0]

    def watch():
        since = time.monotonic() - t0
        if since >= SAMPLE_S * len(sizes):
            sizes.append(gateway.resident())
        if since >= TELL_S * (told[0] + 1):
            told[0] += 1
            say(f'{since / 60:.0f} min: {crowd.ended.total()} visits, {crowd.wrong} wrong, Squid has {sizes[-1]} kB')
    with troubles.Reconfigurations(gateway, t0, parameters.reconfigure_s) as anew, \
            troubles.Link(world, t0, parameters.falter_s) as link:
        crowd.run(t0 + parameters.seconds, watch)
    left = crowd.go(PATIENCE)
    for each in (anew, link):
        each.check()
    grown = memory.growth(sizes)
    found.figures |= {
        'visits': crowd.ended.total(), 'by kind': dict(crowd.ended), 'bytes of bodies': crowd.received,
        'came to closed ports during a reconfiguration': crowd.excused, 'turned away': crowd.turned_away,
        'reconfigurations': anew.done, 'falterings of the link': link.done,
        'resident, kB': [sizes[0], max(sizes), sizes[-1]],
        'growth after the warm-up': 'too short to say' if grown is None else f'{100 * grown:.1f} %'}
    found.expect(not crowd.wrong, f'{crowd.wrong} visits went wrong:\n' + '\n'.join(crowd.words))
    found.expect(not left, f'{left} visits did not end within {PATIENCE:g} s after the last had come')
    found.expect(crowd.ended.total() > 0, 'nobody came')
    found.expect(grown is None or grown <= memory.GROWTH,
                 f'memory grew by {100 * (grown or 0):.1f} % after the warm-up; allowed is {100 * memory.GROWTH:g} %')


def _at_rest(gateway, found):
    """W is 0, and the counters agree with what the users got."""
    try:
        gateway.rest()
    except AssertionError as busy:
        found.wrong.append(f'at rest: {busy}')
    charged, = gateway.totals('bytes')
    got = found.figures['bytes of bodies']
    found.figures['bytes charged'] = charged
    found.expect(charged >= got, f'{charged} bytes were charged to classes, and users got {got}')
