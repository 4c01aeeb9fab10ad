# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs_link rate=auto: the rate of a link is found and followed, and its state is reported."""
import pytest

from gateway import SOON
from test_reports import samples, scrape

RATE = 4e6
AUTO = 'auto min=500kbit max=50Mbit'


def found(link):
    return link.gateway.report()['link']


def wait_for_rate(link, rate):
    """Waits until the estimate is within a tenth of the rate."""
    link.gateway.wait_until(lambda: 0.9 * rate < found(link)['rate'] < 1.1 * rate, lambda: f'{rate}: {found(link)}')


@pytest.mark.link(rate_bps=RATE, buffer_bdp=40, users=(2, 2, 2))
def test_the_rate_is_found_and_followed(slow_link):
    gateway = slow_link.gateway.start(SOON, rate=AUTO)
    assert found(slow_link)['rate'] == 500_000, 'nobody has asked for anything'
    load = slow_link.users.load(slow_link.world.users)
    wait_for_rate(slow_link, RATE)
    slow_link.world.bottleneck.set_rate(RATE / 4)
    wait_for_rate(slow_link, RATE / 4)
    told = found(slow_link)['auto']
    assert told['min'] == 500_000 and told['max'] == 50_000_000
    assert told['limited'] is True and told['delivered'] > 0
    assert told['advice'] is None, 'seconds are too little to go by'
    assert told['changes'] and all(change['because'] for change in told['changes'])
    assert told['changes'][-1]['to'] == pytest.approx(found(slow_link)['rate'], rel=0.5)
    slow_link.world.bottleneck.set_rate(RATE)
    wait_for_rate(slow_link, RATE)

    # A new weight does not restart the search.
    gateway.reconfigure(SOON, rate=AUTO, weights={'gold': 3, 'silver': 2, 'bronze': 1})
    assert found(slow_link)['rate'] > 0.6 * RATE
    figures = samples(scrape(slow_link)[1])
    assert figures[('msfrs_link_capacity_bytes_per_second',)] * 8 > 0.6 * RATE
    assert figures[('msfrs_link_delivered_bytes_per_second',)] > 0
    assert ('msfrs_link_last_change', 'carried') in figures
    load.stop(abort=True)


def test_a_known_rate_is_taken_as_it_is(slow_link):
    slow_link.gateway.start()
    assert 'auto' not in found(slow_link)
    assert ('msfrs_link_limited',) not in samples(scrape(slow_link)[1])
