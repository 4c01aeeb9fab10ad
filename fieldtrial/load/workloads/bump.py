# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation with TLS that Squid decrypts (`ssl_bump bump`): its cost, and whether decrypted responses are shared.
HTTP/1, since Squid speaks no HTTP/2."""
from ...base.spec import Profile
from .backlogged import Backlogged


class Bump(Backlogged):
    name = 'bump'
    summary = 'saturated, over TLS that Squid decrypts'
    profile = Profile('Backlogged, TLS decrypted', rank=125, saturated=True, latency=True, queue=True, work=True)
    via = 'https'
    bumped = True
