# SPDX-License-Identifier: GPL-2.0-or-later
"""The offers: what users request, drawn from the seed alone, so that every arm of a trial gets the same requests.

Each user, and each kind of request of a user, has its own random generator. In a closed loop the responses determine
how far a sequence gets, but never its content.
"""
import dataclasses
import random


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """One response that a user wants: `size` bytes from `server`, over TLS or not."""
    server: object
    size: int
    tls: bool


class Offers:
    """The random draws of a run."""

    def __init__(self, spec, reachable):
        """reachable: maps a user to the servers that share an address family with it."""
        self.spec, self.reachable = spec, reachable

    def random(self, *names):
        """A separate random generator for `names`, independent of all other draws."""
        return random.Random('/'.join(map(str, (self.spec.seed, *names))))

    def of(self, user, kind='object'):
        """The endless sequence of a user's Offers."""
        for page in self.pages(user, 1, kind):
            yield page[0]

    def pages(self, user, objects, kind='object'):
        """The endless sequence of a user's pages: lists of Offers from one server, all over TLS or none."""
        servers, draw, sizes = self.reachable(user), self.random('offers', kind, user.name), self.spec.distribution
        while True:
            server, tls = draw.choice(servers), draw.random() < self.spec.tls_share
            yield [Offer(server, sizes.draw(draw), tls) for _ in range(objects)]
