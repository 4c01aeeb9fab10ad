# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation as browsers make it today: HTTP/2 in TLS, one tunnel for each user and server that is kept open.

As many requests in flight as in `backlogged`, the same sizes from the same servers; those that go to one server share
the tunnel there. To the gateway a tunnel is busy, or silent, and it is never told which request a byte belongs to.
"""
from .backlogged import Backlogged


class HttpsBacklogged(Backlogged):
    """Backlogged over kept tunnels."""

    name = 'https-backlogged'
    summary = 'saturated, over HTTP/2 in TLS tunnels that each user keeps open, one for each server'
    via = 'h2'


WORKLOAD = HttpsBacklogged
