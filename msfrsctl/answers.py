# SPDX-License-Identifier: GPL-2.0-or-later
"""The settings of `msfrsctl setup`, and what each of them may be."""
import dataclasses
import ipaddress
import re
from dataclasses import dataclass, field

from .errors import WRONG, CtlError
from .site import means
from .units import NUMBER, is_weight, rate_of, typed_rate

NAME = re.compile(r'[A-Za-z0-9_.-]{1,32}')
CLASS = re.compile(rf'({NAME.pattern})={NUMBER}(?:=(\S+))?')
INTERFACE = re.compile(r'[^\s/:+]{1,15}')
#: An HTTP URL without credentials, on a server that anybody may query: Squid itself speaks HTTP to it.
PAGE = re.compile(r'http://[^\s/:@]+(:\d{1,5})?/\S*')


@dataclass
class Class:
    """networks: those of its users; empty for the default class."""
    name: str
    weight: str
    networks: list[str]

    def __str__(self):
        return '='.join((self.name, self.weight, ','.join(self.networks))).rstrip('=')


@dataclass
class Answers:
    """Names as in the flags and the lines of an answer file. Empty: not known yet."""
    outside: str = ''           #: the interface of the access link
    inside: str = ''            #: the users' interfaces, separated by spaces
    users: str = ''             #: their networks, separated by spaces
    rate: str = ''              #: 20Mbit, or auto
    min: str = ''
    max: str = ''
    edge: str = ''              #: yes: msfrs-edge limits the traffic that bypasses Squid to its share; or no
    uplink: str = ''            #: the rate of the uplink, if msfrs-edge is to schedule it
    mode: str = 'redirect'
    quic: str = 'reject'
    probe: str = 'http://example.com/'   #: URL fetched through Squid before users are redirected to it, or no
    classes: list[Class] = field(default_factory=list)

    def take(self, name, value):
        """Sets one value after checking it alone and against the known ones; a CtlError if it is wrong."""
        tried = dataclasses.replace(self, **{name: CHECKS[name](value)})
        tried.agree()
        setattr(self, name, getattr(tried, name))

    def add(self, said):
        """Likewise adds a class, in the syntax of class_of()."""
        cls = class_of(said)
        if cls.name in (other.name for other in self.classes):
            raise CtlError(f"class '{cls.name}' is there already: each class has a name of its own", WRONG)
        if not cls.networks and not all(other.networks for other in self.classes):
            raise CtlError(f"class '{cls.name}' has no networks, and another class is the default of all other users "
                           f'already', WRONG)
        dataclasses.replace(self, classes=[*self.classes, cls]).agree()
        self.classes.append(cls)

    def agree(self):
        """A CtlError if the known values contradict each other."""
        if self.outside and any(means(name, self.outside) for name in self.inside.split()):
            raise CtlError(f'{self.outside} cannot be both outside and inside: name the interface of the access link, '
                           f'and those of the users', WRONG)
        for name in ('min', 'max'):
            if getattr(self, name) and self.rate not in ('', 'auto'):
                raise CtlError(f'{name} is for rate auto alone; leave it out with rate {self.rate}', WRONG)
        if self.uplink and self.edge == 'yes':
            raise CtlError('msfrs-edge can schedule the uplink, or hold what bypasses Squid to its share: leave uplink '
                           'out, or say edge = no', WRONG)
        if self.min and self.max and rate_of(self.min) > rate_of(self.max):
            raise CtlError(f'min {self.min} is above max {self.max}', WRONG)
        for number, cls in enumerate(self.classes):
            for network in map(ipaddress.ip_network, cls.networks):
                if self.users and not any(map(network.overlaps, _networks(self.users.split()))):
                    raise CtlError(f"network {network} of class '{cls.name}' is not in the users' networks "
                                   f'({self.users}), so nobody would be in that class: correct one of them', WRONG)
                for other in self.classes[:number]:
                    if any(_within(network, around) for around in _networks(other.networks)):
                        raise CtlError(f"network {network} belongs to class '{other.name}' already, which comes first, "
                                       f"so nobody would be in '{cls.name}': give the class of the smaller network "
                                       f'first', WRONG)

    def text(self):
        """The lines of an answer file that gives all these answers."""
        return ''.join(f'{name} = {value}\n' for name in CHECKS if (value := getattr(self, name))) + \
            ''.join(f'class = {cls}\n' for cls in self.classes)


def _interface(said):
    if not INTERFACE.fullmatch(said):
        raise CtlError(f"interface '{said}' is not the name of one", WRONG)
    return said


def _interfaces(said):
    return f'{_interface(said[:-1])}+' if said.endswith('+') else _interface(said)


def _list(check):
    """A check of a list of one or more, as words() has them."""
    def checked(said):
        return ' '.join(map(check, words(said))) or check(said)
    return checked


def words(said):
    """Those of a list as people write it: `a b`, `a, b and c`."""
    return [word for word in said.replace(',', ' ').split() if word.lower() != 'and']


def _rate(name):
    return lambda said: typed_rate(said, name)


def _rate_or_auto(said):
    if said.strip().lower() == 'auto':
        return 'auto'
    return typed_rate(said)


def _one_of(name, *allowed):
    def checked(said):
        if said.strip() not in allowed:
            raise CtlError(f"{name} '{said}' must be {' or '.join(allowed)}", WRONG)
        return said.strip()
    return checked


def _page(said):
    if said.strip() != 'no' and not PAGE.fullmatch(said.strip()):
        raise CtlError(f"probe '{said}' must be a page such as http://example.com/, by http, or no", WRONG)
    return said.strip()


def _networks(texts):
    return [ipaddress.ip_network(text) for text in texts]


def _within(network, around):
    return network.version == around.version and network.subnet_of(around)


def network_of(text):
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise CtlError(f"network '{text}' is not an address or network, such as 10.20.0.0/16", WRONG) from None


#: Each check turns an answer into the value to be written, or raises a CtlError with the reason.
CHECKS = {'outside': _interface, 'inside': _list(_interfaces), 'users': _list(network_of), 'rate': _rate_or_auto,
          'edge': _one_of('edge', 'yes', 'no'), 'min': _rate('min'), 'max': _rate('max'), 'uplink': _rate('uplink'),
          'mode': _one_of('mode', 'redirect', 'tproxy'),
          'quic': _one_of('quic', 'reject', 'allow'), 'probe': _page}


def class_of(text):
    """A Class of `gold=4=10.20.1.0/24,2001:db8::/64`, or `bronze=1` for the default."""
    match = CLASS.fullmatch(text)
    if not match or not is_weight(match[2]):
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
            raise CtlError(f"{path}:{number}: '{line}' must be NAME = VALUE, and NAME one of "
                           f"{', '.join(sorted(names))}", WRONG)
        if name == 'class':
            found['class'].append(value)
        elif name in found:
            raise CtlError(f"{path}:{number}: {name} is given a second time: remove one of the lines", WRONG)
        else:
            found[name] = value
    return found
