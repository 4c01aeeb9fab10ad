# SPDX-License-Identifier: GPL-2.0-or-later
"""How `msfrsctl setup` gets its Answers: from flags and files, from the machine, and by asking. Each answer is checked
at once."""
from . import measure
from .answers import CHECKS, NAME, Answers, network_of
from .errors import WRONG, CtlError
from .units import canonical, is_weight

#: Questions for values that neither flags nor a file give; min and max only with rate auto.
ASKED = {'outside': 'Interface of the access link', 'inside': 'Interfaces of the users', 'users': "Users' networks",
         'rate': 'Rate of the downlink, such as 20Mbit, a little less rather than more; auto, if it is unknown; or '
                 'the URL of a large file on a fast server, from which it is measured',
         'min': 'The least that the downlink carries', 'max': 'The most that the downlink can carry'}
CLASSES_ASKED = 'Names of the classes, the most important first (such as teachers students guests); none: all are alike'
WEIGHTS_ASKED = 'Weights of {}, for each user'
NETWORKS_ASKED = 'Networks of {}'


def collect(system, given, unasked, url=None):
    """All Answers; each is checked as soon as it is known. given: {name: value}, `class` a list; unasked: take the
    values found on the machine, and ask nothing; url: a file to measure the rate with, if it is not given. Given values
    are checked before the first question."""
    found = Answers()
    for name in CHECKS:
        if given.get(name) is not None:
            found.take(name, given[name])
    for said in given.get('class') or ():
        found.add(said)
    if not found.edge:
        found.take('edge', 'no' if found.uplink else 'yes')
    if url and found.rate:
        raise CtlError(f'--measure proposes the rate, and {found.rate} was given: leave one of them out', WRONG)
    links, proposed = seen(system)
    proposed['min'] = '1Mbit'

    def measured(url):
        line = measure.line(system, found.outside, url)
        proposed.update(line.proposal())
        system.say(f'measured {line}; proposed: rate {proposed["rate"]}')
        return proposed['rate']

    for name, question in ASKED.items():
        if getattr(found, name) or name in ('min', 'max') and found.rate != 'auto':
            continue
        if name == 'rate' and url:
            try:
                measured(url)
            except CtlError as problem:
                if unasked:
                    raise
                system.say(str(problem))
        if name == 'max' and name not in proposed and not unasked:
            proposed[name] = _fastest(system, found.outside)
        if not unasked:
            _ask(system, question, proposed.get(name, ''),
                 lambda said, name=name: _take(system, found, name, said, links), measured if name == 'rate' else None)
        elif not proposed.get(name) or name == 'min' and 'max' not in proposed:
            raise CtlError(f'{name} is not known ({question.partition(", ")[0]}): give --{name}'
                           + (', since rate auto needs min and max, between which it is looked for'
                              if name in ('min', 'max') else ', or --measure URL' if name == 'rate' else ''), WRONG)
        else:
            found.take(name, proposed[name])
    if not found.classes and not unasked:
        _ask_classes(system, found)
    if all(cls.networks for cls in found.classes):
        found.add('users=1' if all(cls.name != 'users' for cls in found.classes) else 'others=1')
    return found


def _take(system, found, name, said, links):
    found.take(name, said)
    try:
        need_links(links, getattr(found, name) if name in ('outside', 'inside') else '')
    except CtlError:
        setattr(found, name, '')
        raise
    if said.strip() != getattr(found, name):
        system.say(f'understood: {getattr(found, name)}')


def need_links(links, names):
    """A CtlError if one of the interfaces, separated by spaces, is not among `links`. Those named by ppp+ come and go.
    """
    for link in names.split():
        if not link.endswith('+') and link not in links:
            raise CtlError(f"interface '{link}' is not up here; there are: {' '.join(links)}", WRONG)


def _ask(system, question, proposal, take, measured=None):
    """Repeats the question until the answer is valid. measured: takes a URL that is given instead of an answer, and
    returns the next proposal."""
    while True:
        said = system.ask(question, proposal)
        try:
            if measured and measure.is_url(said):
                proposal = measured(said)
                continue
            take(said)
            return
        except CtlError as problem:
            system.say(f'{problem}. Once more:')


def _ask_classes(system, found):
    """Names in order of importance, weights, and the networks of all but the last, which has all other users."""
    names, weights = [], []

    def take_names(said):
        names[:] = said.replace(',', ' ').split()
        for name in names:
            if not NAME.fullmatch(name):
                raise CtlError(f"class name '{name}' must be of letters, digits and ._-, at most 32", WRONG)
            if names.count(name) > 1:
                raise CtlError(f"class '{name}' is named twice: each class has a name of its own", WRONG)

    def take_weights(said):
        weights[:] = said.replace(':', ' ').replace(',', ' ').split()
        for weight in weights:
            if not is_weight(weight):
                raise CtlError(f"weight '{weight}' must be a number from 0.001 to 10000", WRONG)
        if len(weights) != len(names):
            raise CtlError(f'{len(weights)} weights for {len(names)} classes: give one for each of {" ".join(names)}',
                           WRONG)

    def take_networks(name, weight, said):
        networks = [network_of(word) for word in said.replace(',', ' ').split()]
        if not networks:
            raise CtlError(f"class '{name}' needs the networks of its users, such as 10.20.1.0/24: only the last class "
                           f'has everybody else', WRONG)
        found.add(f'{name}={weight}={",".join(networks)}')

    _ask(system, CLASSES_ASKED, '', take_names)
    if len(names) > 1:
        _ask(system, WEIGHTS_ASKED.format(' '.join(names)), ' '.join(str(2 ** power) for power in
                                                                     reversed(range(len(names)))), take_weights)
    for name, weight in list(zip(names, weights))[:-1]:
        _ask(system, NETWORKS_ASKED.format(name), '',
             lambda said, name=name, weight=weight: take_networks(name, weight, said))
    if names:
        found.add(f'{names[-1]}={weights[-1] if weights else 1}')
        system.say(f'{names[-1]}: everybody else')


def _fastest(system, interface):
    """The speed of the interface itself, if the kernel reports it."""
    said = (system.read(f'/sys/class/net/{interface}/speed') or '').strip()
    return canonical(int(said) * 10**6) if said.isdigit() and int(said) else '100Mbit'


def seen(system):
    """(names of the interfaces that are up, values found on the machine): outside (interface of the default route),
    inside (the other interfaces that are up and have addresses) and users (their networks)."""
    routes = [route['dev'] for family in ('-4', '-6') for route in system.ip(family, 'route', 'show', 'default')
              if 'dev' in route]
    outside = routes[0] if routes else ''
    inside, networks = [], []
    links = [link for link in system.ip('addr', 'show', 'up') if 'ifname' in link]
    for link in links:
        if link['ifname'] in ('lo', outside) or 'LOOPBACK' in link.get('flags', []) or link.get('master'):
            continue
        found = [f'{address["local"]}/{address["prefixlen"]}' for address in link.get('addr_info', [])
                 if address.get('scope') == 'global']
        if found:
            inside.append(link['ifname'])
            networks += [network_of(address) for address in found]
    return [link['ifname'] for link in links], \
        {'outside': outside, 'inside': ' '.join(inside), 'users': ' '.join(networks)}
