# SPDX-License-Identifier: GPL-2.0-or-later
"""A voice call next to a backlog: 50 datagrams a second to the user, G.711 in RTP, bypassing Squid. Their delay is that
of the provider's queue alone, as the servers' round-trip times do not apply to the call."""
from ...base.spec import Answer, Profile
from ..traffic.workload import CbrStream
from .backlogged import HttpsBacklogged

PACKETS_PER_S = 50
FRAME = 14 + 20 + 8 + 12 + 160      #: bytes: Ethernet, IPv4, UDP, RTP, 20 ms of G.711


class Call(HttpsBacklogged):
    """Backlogged over persistent tunnels, with a call in parallel."""

    name = 'call'
    summary = 'saturated over kept tunnels, with a voice call by UDP beside'
    profile = Profile('A call beside a backlog', rank=70, saturated=True, shared=True, queue=True,
                      answers=(Answer('Calls', {'delay': '95 % of the voice packets arrive within {}',
                                                'score': 'its opinion score (1 to 4.5) is {}'}),))

    def beside(self, _rate_bps, duration_s):
        return (CbrStream(PACKETS_PER_S * FRAME * 8, ((0.0, duration_s),), frame=FRAME, timed=True),)
