# SPDX-License-Identifier: GPL-2.0-or-later
"""What passes a gateway of today besides the web, on an idle link or beside downloads: how many connections of each kind
work, and for how long one takes. Kinds: load/internet.py. Users have IPv4 and IPv6 by turns, in IPv6 with privacy
addresses, and know addresses that the gateway's resolver does not.
"""
import asyncio
import csv
import os

from ...base.spec import Answer, Profile
from ...site.addresses import privacy
from ..traffic import closed
from ..traffic.workload import Parameter, Workload, every_second

COLUMNS = 't_start', 'kind', 'user', 'works', 'seconds', 'why'
#: After this time a connection has failed, s: few programs wait for longer.
PATIENCE_S = 10.0


class Internet(Workload):
    name = 'internet'
    summary = 'other protocols on ports 443 and 80, ClientHellos of all kinds, silent and refusing servers'
    profile = Profile('The internet of today', rank=75, answers=(Answer('Internet', {
        'works': 'of the connections other than plain web requests, {} work'}),))
    parameters = (Parameter('connections', 'integer', 25, 'connections', 'of each kind, as many as fit into the run',
                            low=1, high=1000),
                  Parameter('downloads', 'integer', 0, 'downloads', 'that every second user keeps in flight, and '
                            'nothing else', low=0, high=64))
    conversations = True

    def encrypts(self):
        return True

    def population(self, classes, per_class):
        return dict.fromkeys(classes, 2)

    async def run(self, run):
        beside = every_second(run.spec.mine) if self.values['downloads'] else ()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(closed.run(run, self.values['downloads'], 0.0, self.phases(run.spec), via='http',
                                         users=beside))
            tasks.create_task(self._connections(run, [user for user in run.spec.mine if user not in beside]))

    async def _connections(self, run, users):
        kinds, each = run.spec.conversations, self.values['connections']
        gap = run.spec.duration_s / (each * len(kinds))
        path = os.path.join(run.spec.out, 'connections.csv')
        with open(path, 'x', encoding='utf-8', newline='', buffering=1) as file:
            rows = csv.writer(file, lineterminator='\n')
            rows.writerow(COLUMNS)
            async with asyncio.TaskGroup() as tasks:
                for number in range(each * len(kinds)):
                    await run.sleep_until(number * gap)
                    if run.now() >= run.spec.duration_s:
                        break
                    user = users[number // len(kinds) % len(users)]
                    tasks.create_task(self._connection(run, rows, user, number))

    async def _connection(self, run, rows, user, number):
        kinds, begun, why = run.spec.conversations, run.now(), ''
        turn, place = divmod(number, len(kinds))
        sources = [user.v4] if user.v4 and turn % 2 == 0 else privacy(user)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await run.spec.converse(place, sources[turn // 2 % len(sources)], run.offers.random('internet', number))
        except OSError as error:
            why = f'{type(error).__name__}: {error}'[:200]
        rows.writerow((f'{begun:.6f}', kinds[place], user.name, int(not why), f'{run.now() - begun:.6f}', why))
