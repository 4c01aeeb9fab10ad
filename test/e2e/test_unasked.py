# SPDX-License-Identifier: GPL-2.0-or-later
"""A user whose servers send what looks like no answer, as fast as they can: it gets no more than its share, and the
other users of its class have theirs, while that goes on and as soon as it is over."""
import time

import pytest

from both_ends import both_ends_of
from gateway import SOON
from test_shares import MEASURED, WARM_UP

MUCH = 16_000_000               #: bytes that the user's servers have to send: more than the link carries meanwhile
OF_TLS = 5 + 1 + 16             #: header, type and tag of a record
SEGMENT = 1448                  #: bytes of one that is full: 1500 less the headers, with TCP's timestamps
SETTLES = 8.0                   #: s after the flood; a debt of the class would last for a minute


def record(frame):
    """A record of TLS 1.3 with a frame of HTTP/2 of so many bytes."""
    return b'\x17\x03\x03' + (frame + OF_TLS - 5).to_bytes(2, 'big') + bytes(frame + OF_TLS - 5)


REQUEST, ANSWER = record(60), record(40)
#: Each fills a segment, so that all segments end where a record ends: sizes of housekeeping, and one record.
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


def flood(link, user, count, state, what):
    """Tunnels of a user, in a state, whose servers then send `what` again and again."""
    pairs = [tunnel(link, user) for _ in range(count)]
    if state != 'asked':
        for pair in pairs:
            pair.server.say(ANSWER)
            pair.client.wait_for(ANSWER)
    if state == 'over':
        link.gateway.wait_for(queued=0, paused=0, in_flight=0, silent=count)
    for pair in pairs:
        pair.server.say(what * (MUCH // count // len(what)))
    return pairs


@pytest.mark.parametrize('count, state, what', (
    (4, 'over', SMALL), (4, 'asked', SMALL), (4, 'answered', SMALL), (4, 'answered', WHOLE), (40, 'over', SMALL)),
                         ids=('over', 'asked', 'answered', 'whole', 'many'))
def test_a_flood_of_records_has_its_share(link, count, state, what):
    """many: what may pass unasked on all of them together is three times what is due to their user."""
    assert len(what) == SEGMENT
    greedy, honest = link.of('bronze')
    others = [user for user in link.world.users if user is not greedy]
    pairs = flood(link, greedy, count, state, what)
    load = link.users.load(others)

    def shares(seconds, users):
        """Of each user in some seconds, in parts of what is due to it among `users`."""
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
    time.sleep(1.0)     # what was under way
    after = shares(SETTLES, others)
    load.stop(abort=True)
    assert during[greedy] < 1.5, during
    assert during[honest] > 0.6, during
    assert after[honest] > 0.5, after
