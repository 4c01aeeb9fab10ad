# SPDX-License-Identifier: GPL-2.0-or-later
"""A user whose servers send unsolicited bytes as fast as they can: it gets no more than its share, and the other users
of its class get theirs, during the flood and as soon as it is over."""
import itertools
import threading
import time

import pytest

from both_ends import both_ends_of
from gateway import SOON
from test_shares import MEASURED, WARM_UP

MUCH = 16_000_000               #: bytes that the user's servers send: more than the link carries meanwhile
OF_TLS = 5 + 1 + 16             #: header, type and tag of a record
SEGMENT = 1448                  #: payload bytes of a full segment: 1500 less the headers, with TCP timestamps
SETTLES = 8.0                   #: s after the flood; a debt of the class would last a minute


def record(frame):
    """A TLS 1.3 record with an HTTP/2 frame of that many bytes."""
    return b'\x17\x03\x03' + (frame + OF_TLS - 5).to_bytes(2, 'big') + bytes(frame + OF_TLS - 5)


REQUEST, ANSWER = record(60), record(40)
#: Each fills a segment, so that all segments end with a record: sizes of housekeeping frames, and a single record.
SMALL, WHOLE = 27 * record(26) + 3 * record(17) + record(13), record(SEGMENT - OF_TLS)


@pytest.fixture
def link(slow_link):
    with both_ends_of(slow_link, ('msfrs_window interval=1s', SOON)):
        yield slow_link
        slow_link.ends.none_left()


def tunnel(link, user):
    pair = link.ends.tunnel(user)
    pair.client.say(REQUEST)
    pair.server.wait_for(REQUEST)
    return pair


def tunnels(link, user, count, state):
    """Tunnels of a user, in a state."""
    pairs = [tunnel(link, user) for _ in range(count)]
    if state != 'asked':
        for pair in pairs:
            pair.server.say(ANSWER)
            pair.client.wait_for(ANSWER)
    if state == 'over':
        link.gateway.wait_for(queued=0, paused=0, in_flight=0, silent=count)
    return pairs


@pytest.mark.parametrize('state, what', (('over', SMALL), ('asked', SMALL), ('answered', SMALL),
                                         ('answered', WHOLE)), ids=('over', 'asked', 'answered', 'whole'))
def test_a_flood_of_records_has_its_share(link, state, what):
    assert len(what) == SEGMENT
    pairs = tunnels(link, link.of('bronze')[0], 4, state)
    for pair in pairs:
        pair.server.say(what * (MUCH // len(pairs) // len(what)))
    assert_it_has_its_share(link, pairs)


def test_a_little_on_many_tunnels_has_its_share(link):
    """The unsolicited allowance of all of them together is five times their user's fair share."""
    pairs, stopped = tunnels(link, link.of('bronze')[0], 60, 'over'), threading.Event()

    def keep_saying():
        for pair in itertools.cycle(pairs):
            pair.server.say(SMALL)
            if stopped.wait(1.0 / len(pairs)):
                return
    saying = threading.Thread(target=keep_saying, daemon=True)
    saying.start()
    try:
        assert_it_has_its_share(link, pairs)
    finally:
        stopped.set()
        saying.join()


def assert_it_has_its_share(link, pairs):
    """pairs: the tunnels of bronze's first user; they are reset at the end."""
    greedy, honest = link.of('bronze')
    others = [user for user in link.world.users if user is not greedy]
    load = link.users.load(others)

    def shares(seconds, users):
        """Bytes of each user in some seconds, as a fraction of its fair share among `users`."""
        before, greedy_before = load.bytes(), sum(len(pair.client.heard) for pair in pairs)
        time.sleep(seconds)
        got = load.since(before)
        got[greedy] = sum(len(pair.client.heard) for pair in pairs) - greedy_before
        weights = sum(link.world.weights[user.cls] for user in users)
        return {user: got[user] / sum(got.values()) * weights / link.world.weights[user.cls] for user in got}

    time.sleep(WARM_UP)
    during = shares(MEASURED, link.world.users)
    for pair in pairs:
        pair.server.leave(reset=True)
    time.sleep(1.0)     # for bytes in flight
    after = shares(SETTLES, others)
    load.stop(abort=True)
    assert during[greedy] < 1.5, during
    assert during[honest] > 0.6, during
    assert after[honest] > 0.5, after
