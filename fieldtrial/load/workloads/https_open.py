# SPDX-License-Identifier: GPL-2.0-or-later
"""Open arrivals over kept tunnels: each object is a stream on the user's one tunnel to its server.

The load is counted as in `open`, so it is comparable; frames of HTTP/2 and records of TLS add less than 1 % to it.
"""
from .open import Open


class HttpsOpen(Open):
    """Open over kept tunnels."""

    name = 'https-open'
    summary = 'open arrivals (Poisson), each a stream of HTTP/2 on the tunnel that the user keeps to its server'
    via = 'h2'


WORKLOAD = HttpsOpen
