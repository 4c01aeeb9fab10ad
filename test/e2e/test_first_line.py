# SPDX-License-Identifier: GPL-2.0-or-later
"""One sentence about the gateway: each state as the first line of msfrsctl status and why, of the page, and, in words of
their own, of the users' page."""
import json
import os
import re
import subprocess
import sys
import types

import pytest

from background import PATIENCE, wait_until
from fieldtrial.base.paths import ROOT
from msfrsctl import faults
from msfrsctl.site import Site
from msfrsctl.system import System
from page_fixtures import directory, gateway, manager  # noqa: F401 (fixtures)
from page_service import WHY, Page

SINCE = 1_790_000_000
KNOWN = (faults.UNREACHABLE, faults.EDGE, faults.LOG, faults.NAMES)
#: A report as recorded while three requests waited; the share of the link that is used, and the waits, are the tests'.
BUSY = {action: (ROOT / 'test/msfrsctl' / f'busy.{end}').read_text()
        for action, end in (('msfrs', 'yaml'), ('msfrs-metrics', 'metrics'))}
BUSY['msfrs-users'] = BUSY['msfrs'].partition('\ntop_')[2]
OFF = {'msfrs': 'scheduling: false\nholding: no, because msfrs is off\n',
       'msfrs-metrics': 'msfrs_scheduling 0\n# EOF\n', 'msfrs-users': 'users: []\n'}


def pages(used, waited):
    """What the cache manager says. waited: by all three, s; None: nobody waits."""
    report = BUSY['msfrs'].replace('waited: 0.044', f'waited: {waited}')
    if waited is None:
        report = re.sub(r'(?s)\nheld:\n.*?\n(?=#)', '\nheld: []\n', report)
    return {**BUSY, 'msfrs': report,
            'msfrs-metrics': BUSY['msfrs-metrics'].replace('utilisation_ratio 0\n', f'utilisation_ratio {used}\n')}


def produce(state, site, manager):
    """Returns the light, and the beginning of the sentence."""
    if state == faults.OFF:
        site.system.write(site.off_path, f'{SINCE}\n')
        faults.publish(site, faults.Fault(faults.NAMES, 'Names are not resolved.'))
        return 'red', f'Off since {faults.clock(site, SINCE)} by msfrsctl off: '
    if state == faults.TEST:
        site.system.write(site.test_path, f'{os.getpid()} {SINCE}\n')
        faults.publish(site)
        return 'amber', f'A test runs since {faults.clock(site, SINCE)}'
    if state in KNOWN:
        faults.publish(site, faults.Fault(state, f'What is wrong is {state}. To do: mend it.'))
        return 'red' if state == faults.UNREACHABLE else 'amber', f'What is wrong is {state}. To do: mend it.'
    if state == 'silent':
        manager.close()
        return 'red', 'Squid at 127.0.0.1:3128 does not answer: '
    light, begins, said = {
        'unscheduled': ('red', 'Requests are not scheduled now', OFF),
        'rate': ('amber', 'rate= is too low: the link carried 438 % of ', pages(4.38, 0.1)),
        'trouble': ('amber', '30 % of the link is used. 2 users wait, the longest for 30.0 s', pages(0.3, 30)),
        'waits': ('amber', 'The link is full. 2 users wait, the longest for 30.0 s', pages(0.97, 30)),
        'full': ('green', 'The link is full. 2 users wait, the longest for 3.0 s', pages(0.97, 3)),
        'room': ('green', '30 % of the link is used. Nobody waits.', pages(0.3, None))}[state]
    manager.text = said.__getitem__
    return light, begins


@pytest.mark.parametrize('state', (faults.OFF, 'silent', 'unscheduled', 'rate', faults.TEST, *KNOWN, 'full', 'waits',
                                   'room', 'trouble'))
def test_each_state_is_said_first(gateway, directory, manager, state):
    (directory / 'squid.conf').write_text('http_port 3128\n')
    options = {'squid_conf': f'{directory}/squid.conf', 'etc': str(directory), 'state': str(directory)}
    site = Site(types.SimpleNamespace(**options, squid=None, manager=None), System(), '/nonexistent')
    faults.publish(site)

    def said(*words):
        given = [word for name, value in options.items() for word in (f'--{name.replace("_", "-")}', value)]
        done = subprocess.run(gateway.enter([sys.executable, '-m', 'msfrsctl', *words, '--engine', str(WHY), *given]),
                              capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=False)
        return (done.stdout or done.stderr.removeprefix('msfrsctl: ')).partition('\n')[0]
    manager.text = pages(0, None).__getitem__
    with Page(gateway, directory, 'users_listen 127.0.0.1:3881') as page:
        page.wait_for(lambda data: data['trouble'] == '' and data['classes'], 'the first poll')
        light, begins = produce(state, site, manager)
        data = page.wait_for(lambda data: data['verdict'].startswith(begins), begins)
        assert data['light'] == light
        sentence = data['verdict']
        assert [said('status'), said('why', '198.18.16.1', '--seconds', '0')] == [sentence] * 2
        users = wait_until(lambda: (own := json.loads(page.get('/me.json', port=3881)[2]))['gateway'] == state and own,
                           'the users\' page')
        assert users['light'] == light
        for language in ('en', 'de'):
            words = json.loads(page.get('/words.json', port=3881, Accept_Language=language)[2])
            assert words[f'gateway_{state}'] and words['language'] == language
        assert ('Nothing is wrong.' in sentence) == (light == 'green')
