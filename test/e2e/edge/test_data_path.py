# SPDX-License-Identifier: GPL-2.0-or-later
"""Real packets through msfrs-edge."""
import contextlib

import pytest

from background import wait_until
from edge_daemon import iperf, iperf_server, link_rate, report, sent_bytes
from site_in_namespaces import SERVER

CONFIGURATION = '''
link rate={rate}Mbit overhead=14B
queue number=7
scheduler {scheduler}
{aqm}
limit 100
'''


@contextlib.contextmanager
def traffic(site, family, rate, *options):
    """iperf3 through the gateway, after a warm-up of half a second's worth of packets."""
    with iperf_server(site.server):
        client = iperf(site.client, SERVER[family], *options, seconds=4)
        wait_until(lambda: sent_bytes(site.gateway)[0] > rate * 1e6 / 16, 'half a second of traffic')
        yield
        report(client)


@pytest.mark.parametrize('family', (4, 6))
@pytest.mark.parametrize('rate, scheduler, aqm', ((10, 'drr', 'aqm faba'), (50, 'sfq', 'aqm droptail'),
                                                  (5, 'fifo', '')))
def test_tcp_goes_at_the_configured_rate(site, edge, rate, scheduler, aqm, family):
    with edge(CONFIGURATION.format(rate=rate, scheduler=scheduler, aqm=aqm)), \
            traffic(site, family, rate, '-C', 'cubic', '-P', 4):
        found = link_rate(site.gateway, 2)
    # TCP may leave the queue empty now and then.
    assert rate * 1e6 * 0.95 < found < rate * 1e6 * 1.01


@pytest.mark.parametrize('rate', (1, 20))
def test_a_flood_goes_at_the_configured_rate(site, edge, rate):
    with edge(CONFIGURATION.format(rate=rate, scheduler='drr', aqm='')), \
            traffic(site, 4, rate, '-u', '-b', f'{1.5 * rate}M', '-l', 1200):
        found = link_rate(site.gateway, 2)
    # One packet more or less at each end counts, too.
    assert found == pytest.approx(rate * 1e6, rel=0.01, abs=8 * 1242)


@pytest.mark.parametrize('gso', ('on', 'off', 'auto'))
def test_segments_stay_together_or_are_cut_before(site, edge, gso, tmp_path):
    for host, interface in ((site.client, 'eth0'), (site.gateway, 'in0'), (site.gateway, 'out0'),
                            (site.server, 'eth0')):
        host.run('ethtool', '-K', interface, 'tso', 'on', 'gso', 'on', 'gro', 'on')
    text = CONFIGURATION.format(rate=100, scheduler='drr', aqm=f'control {tmp_path}/sock')
    with edge(text.replace('number=7', f'number=7 gso={gso}')) as daemon, traffic(site, 4, 100, '-C', 'cubic'):
        found = link_rate(site.gateway, 2)
        passed = [daemon.metrics()[(f'passed_{what}_total', ('class', 'all'))] for what in ('bytes', 'packets')]
    mean = passed[0] / passed[1]
    if gso == 'on':
        assert mean > 3000
        # The interface counts the headers of a GSO packet once; the link is charged those of all its segments.
        assert 100e6 * 1448 / 1514 * 0.95 < found < 100e6
    else:
        assert mean <= 1500     # at this rate 64 KB would delay other flows by 5 ms
        assert 100e6 * 0.9 < found < 100e6 * 1.01
