# SPDX-License-Identifier: GPL-2.0-or-later
"""What `msfrsctl setup` has to know: from flags, a file, what the machine shows, and the administrator."""
import dataclasses
import ipaddress
import json
import re
from dataclasses import dataclass, field

from .errors import WRONG, CtlError
from .units import NUMBER, rate_of

CLASS = re.compile(rf'([A-Za-z0-9_.-]{{1,32}})={NUMBER}(?:=(\S+))?')
INTERFACE = re.compile(r'[^\s/:]{1,15}')


@dataclass
class Class:
    """Its users' networks; none: it is the default."""
    name: str
    weight: str
    networks: list[str]


@dataclass
class Answers:
    """Names as the flags and the lines of an answer file."""
    outside: str = ''           #: the interface of the access link
    inside: str = ''            #: those of the users, with blanks
    users: str = ''             #: their networks, with blanks
    rate: str = ''              #: 20Mbit, or auto
    min: str = ''
    max: str = ''
    uplink: str = ''            #: the rate of the uplink, if msfrs-edge is to schedule it
    mode: str = 'redirect'
    quic: str = 'reject'
    classes: list[Class] = field(default_factory=list)

    def check(self):
        """A CtlError for the first that is wrong."""
        for name in (self.outside, *self.inside.split()):
            if not INTERFACE.fullmatch(name):
                raise CtlError(f"interface '{name}' is not the name of one", WRONG)
        if self.outside in self.inside.split():
            raise CtlError(f'{self.outside} cannot be both outside and inside', WRONG)
        for network in self.users.split():
            network_of(network)
        if self.rate == 'auto':
            if rate_of(self.min) is None or rate_of(self.max) is None:
                raise CtlError('rate auto needs min and max, between which it is looked for, such as 2Mbit and 80Mbit',
                               WRONG)
        elif rate_of(self.rate) is None:
            raise CtlError(f"rate '{self.rate}' must be a number and kbit, Mbit or Gbit, such as 20Mbit, or auto",
                           WRONG)
        if self.uplink and rate_of(self.uplink) is None:
            raise CtlError(f"uplink '{self.uplink}' must be a rate, such as 2Mbit", WRONG)
        for value, allowed in ((self.mode, ('redirect', 'tproxy')), (self.quic, ('reject', 'allow'))):
            if value not in allowed:
                raise CtlError(f"'{value}' must be {' or '.join(allowed)}", WRONG)
        if sum(not cls.networks for cls in self.classes) != 1:
            raise CtlError('one class must have no networks: the default of all other users', WRONG)
        if len({cls.name for cls in self.classes}) < len(self.classes):
            raise CtlError('each class has a name of its own', WRONG)


def network_of(text):
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise CtlError(f"network '{text}' is not an address or network, such as 10.20.0.0/16", WRONG) from None


def class_of(text):
    """A Class of `gold=4=10.20.1.0/24,2001:db8::/64`, or `bronze=1` for the default."""
    match = CLASS.fullmatch(text)
    if not match or not 0.001 <= float(match[2]) <= 10000:
        raise CtlError(f"class '{text}' must be NAME=WEIGHT=NETWORK,NETWORK, or NAME=WEIGHT for the default, such as "
                       f'gold=4=10.20.1.0/24', WRONG)
    return Class(match[1], match[2], [network_of(part) for part in (match[3] or '').split(',') if part])


def read_file(path, text):
    """{name: value}, `class` a list, of an answer file: lines `name = value`, # for comments."""
    names = {option.name for option in dataclasses.fields(Answers)} - {'classes'} | {'class'}
    found = {'class': []}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition('#')[0].strip()
        if not line:
            continue
        name, separator, value = (part.strip() for part in line.partition('='))
        if not separator or name not in names:
            raise CtlError(f"{path}:{number}: '{line}' must be NAME = VALUE; names: {', '.join(sorted(names))}", WRONG)
        if name == 'class':
            found['class'].append(value)
        else:
            found[name] = value
    return found


def seen(system):
    """What the machine shows: outside (interface of the default route), inside (the others that are up and have
    addresses) and users (their networks)."""
    def ip(*words):
        done = system.run('ip', '-j', *words)
        try:
            return json.loads(done.out or '[]') if done else []
        except ValueError:
            return []
    routes = [route['dev'] for family in ('-4', '-6') for route in ip(family, 'route', 'show', 'default')
              if 'dev' in route]
    outside = routes[0] if routes else ''
    inside, networks = [], []
    for link in ip('addr', 'show', 'up'):
        if link.get('ifname') in ('lo', outside) or 'LOOPBACK' in link.get('flags', []) or link.get('master'):
            continue
        found = [f'{address["local"]}/{address["prefixlen"]}' for address in link.get('addr_info', [])
                 if address.get('scope') == 'global']
        if found:
            inside.append(link['ifname'])
            networks += [network_of(address) for address in found]
    return {'outside': outside, 'inside': ' '.join(inside), 'users': ' '.join(networks)}
