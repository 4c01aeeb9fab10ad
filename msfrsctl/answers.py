# SPDX-License-Identifier: GPL-2.0-or-later
"""The settings that `msfrsctl setup` needs: from flags, a file, the machine's state and the administrator."""
import dataclasses
import ipaddress
import json
import re
from dataclasses import dataclass, field

from .errors import WRONG, CtlError
from .units import NUMBER, canonical, rate_of

CLASS = re.compile(rf'([A-Za-z0-9_.-]{{1,32}})={NUMBER}(?:=(\S+))?')
INTERFACE = re.compile(r'[^\s/:]{1,15}')
#: An HTTP URL without credentials, on a server that anybody may query: Squid itself speaks HTTP to it.
PAGE = re.compile(r'http://[^\s/:@]+(:\d{1,5})?/\S*')


@dataclass
class Class:
    """networks: those of its users; empty for the default class."""
    name: str
    weight: str
    networks: list[str]


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
        self.classes.append(cls)

    def agree(self):
        """A CtlError if the known values contradict each other."""
        if self.outside and self.outside in self.inside.split():
            raise CtlError(f'{self.outside} cannot be both outside and inside', WRONG)
        for name in ('min', 'max'):
            if getattr(self, name) and self.rate not in ('', 'auto'):
                raise CtlError(f'{name} is for rate auto alone; leave it out with rate {self.rate}', WRONG)
        if self.uplink and self.edge == 'yes':
            raise CtlError('msfrs-edge can schedule the uplink, or hold what bypasses Squid to its share: leave uplink '
                           'out, or say edge = no', WRONG)
        if self.min and self.max and rate_of(self.min) > rate_of(self.max):
            raise CtlError(f'min {self.min} is above max {self.max}', WRONG)


def _interface(said):
    if not INTERFACE.fullmatch(said):
        raise CtlError(f"interface '{said}' is not the name of one", WRONG)
    return said


def _list(check):
    """A check of a list of one or more, separated by spaces or commas."""
    def checked(said):
        return ' '.join(check(word) for word in said.replace(',', ' ').split()) or check(said)
    return checked


def _rate(name):
    return lambda said: canonical(rate_of(said, name))


def _rate_or_auto(said):
    if said.strip().lower() == 'auto':
        return 'auto'
    return canonical(rate_of(said))


def _one_of(*allowed):
    def checked(said):
        if said.strip() not in allowed:
            raise CtlError(f"'{said}' must be {' or '.join(allowed)}", WRONG)
        return said.strip()
    return checked


def _page(said):
    if said.strip() != 'no' and not PAGE.fullmatch(said.strip()):
        raise CtlError(f"probe '{said}' must be a page such as http://example.com/, by http, or no", WRONG)
    return said.strip()


def network_of(text):
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise CtlError(f"network '{text}' is not an address or network, such as 10.20.0.0/16", WRONG) from None


#: Each check turns an answer into the value to be written, or raises a CtlError with the reason.
CHECKS = {'outside': _interface, 'inside': _list(_interface), 'users': _list(network_of), 'rate': _rate_or_auto,
          'edge': _one_of('yes', 'no'), 'min': _rate('min'), 'max': _rate('max'), 'uplink': _rate('uplink'),
          'mode': _one_of('redirect', 'tproxy'),
          'quic': _one_of('reject', 'allow'), 'probe': _page}
#: Questions for values that neither flags nor a file give; min and max only with rate auto.
ASKED = {'outside': 'Interface of the access link', 'inside': 'Interfaces of the users', 'users': "Users' networks",
         'rate': 'Rate of the downlink, a little less rather than more, such as 20Mbit; or auto, if nobody knows it',
         'edge': 'Hold what bypasses Squid (other ports, UDP, VPNs) to its share, too, by msfrs-edge (yes or no)',
         'min': 'The least that the downlink carries', 'max': 'The most that the downlink can carry'}
CLASS_ASKED = 'Class as NAME=WEIGHT=NETWORK,NETWORK; empty when there are no more'


def collect(system, given, unasked):
    """All Answers; each is checked as soon as it is known. given: {name: value}, `class` a list; unasked: take the
    values found on the machine, and ask nothing. Given values are checked before the first question."""
    found = Answers()
    for name in CHECKS:
        if given.get(name) is not None:
            found.take(name, given[name])
    for said in given.get('class') or ():
        found.add(said)
    proposed = {**seen(system), 'min': '1Mbit', 'edge': 'yes'}
    for name, question in ASKED.items():
        if getattr(found, name) or name in ('min', 'max') and found.rate != 'auto':
            continue
        if name == 'edge' and found.uplink:
            found.take(name, 'no')
            continue
        proposal = proposed.get(name, '')
        if unasked and (not proposal or name in ('min', 'max')):
            raise CtlError(f'{name} is not known: give --{name}'
                           + (', since rate auto needs min and max, between which it is looked for'
                              if name in ('min', 'max') else ''), WRONG)
        if name == 'max':
            proposal = _proposed_max(system, found.outside)
        if unasked:
            found.take(name, proposal)
        else:
            _ask(system, question, proposal, lambda said, name=name: found.take(name, said))
    if not found.classes and not unasked:
        while _ask(system, CLASS_ASKED, '', lambda said: said and found.add(said)):
            pass
    if all(cls.networks for cls in found.classes):
        found.add('users=1' if all(cls.name != 'users' for cls in found.classes) else 'others=1')
    return found


def _ask(system, question, proposal, take):
    """Repeats the question until the answer is valid, and returns it."""
    while True:
        said = system.ask(question, proposal)
        try:
            take(said)
            return said
        except CtlError as problem:
            system.say(f'{problem}. Once more:')


def _proposed_max(system, interface):
    """The speed of the interface itself, if the kernel reports it."""
    said = (system.read(f'/sys/class/net/{interface}/speed') or '').strip()
    return f'{said}Mbit' if said.isdigit() and int(said) else '100Mbit'


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
    """The values found on the machine: outside (interface of the default route), inside (the other interfaces that are
    up and have addresses) and users (their networks)."""
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
