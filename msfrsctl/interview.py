# SPDX-License-Identifier: GPL-2.0-or-later
"""How `msfrsctl setup` gets its Answers: from flags and files, from the machine, and by asking. Each answer is checked
at once."""
from . import measure
from .answers import CHECKS, NAME, Answers, class_of, network_of, words
from .errors import WRONG, CtlError
from .site import means
from .units import canonical, is_weight

#: Questions for values that neither flags nor a file give; min and max only with rate auto.
ASKED = {'outside': 'Interface of the access link', 'inside': 'Interfaces of the users', 'users': "Users' networks",
         'rate': 'Rate of the downlink, such as 20Mbit, a little less rather than more; auto, if it is unknown; or '
                 'the URL of a large file on a fast server, from which it is measured',
         'min': 'The least that the downlink carries', 'max': 'The most that the downlink can carry'}
CLASSES_ASKED = 'Names of the classes, the most important first (such as teachers students guests); none: all are alike'
WEIGHTS_ASKED = 'Weights of {}, for each user'
NETWORKS_ASKED = 'Networks of {}'


#: What the last question may be answered with, beside the names of ASKED.
CLASSES, GO, STOP = 'classes', ('yes', 'y'), ('no', 'n')
#: What is asked again with an answer on which it depends.
AFTER = {'outside': ('inside', 'users', CLASSES), 'inside': ('users', CLASSES), 'users': (CLASSES,),
         'rate': ('min', 'max')}


def collect(system, given, unasked, url=None, earlier=None, differences=lambda found: ()):
    """All Answers; each is checked as soon as it is known. given: {name: value}, `class` a list; unasked: take the
    values found on the machine, and ask nothing; url: a file to measure the rate with, if it is not given. Given values
    are checked before the first question. earlier: as `given`, the answers of the last setup, which are proposed;
    differences: lines that say what these Answers change, shown before the last question."""
    earlier = earlier or {}
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
    links, routes, networks = seen(system)
    proposed, asked = {'min': '1Mbit'}, False

    def proposal(name):
        """An earlier answer that agrees with the answers so far, or what the machine shows beside them."""
        stale = {'inside': any(means(each, found.outside) for each in earlier.get('inside', '').split()),
                 'users': earlier.get('inside') != found.inside}
        if name in earlier and name not in proposed and not stale.get(name):
            return earlier[name]
        inside = [link for link in networks if link not in routes[:1] and link != found.outside]
        of_inside = [network for link in networks if any(means(each, link) for each in found.inside.split())
                     for network in networks[link]]
        return {'outside': routes[0] if routes else '', 'inside': ' '.join(inside),
                'users': ' '.join(of_inside)}.get(name, '') or proposed.get(name, '')

    def measured(url):
        line = measure.line(system, found.outside, url)
        proposed.update(line.proposal())
        system.say(f'measured {line}; proposed: rate {proposed["rate"]}')
        return proposed['rate']

    def ask(name):
        if name == 'max' and name not in proposed and name not in earlier:
            proposed[name] = _fastest(system, found.outside)
        _ask(system, ASKED[name], proposal(name),
             lambda said: _take(system, found, name, said, links, routes), measured if name == 'rate' else None)

    for name, question in ASKED.items():
        _not_exchanged(found, routes if found.outside else ())
        if getattr(found, name) or name in ('min', 'max') and found.rate != 'auto':
            continue
        if name == 'rate' and url:
            try:
                measured(url)
            except CtlError as problem:
                if unasked:
                    raise
                system.say(str(problem))
        if not unasked:
            asked = True
            ask(name)
        elif not proposal(name) or name == 'min' and 'max' not in {**proposed, **earlier}:
            raise CtlError(f'{name} is not known ({question.partition(", ")[0]}): give --{name}'
                           + (', since rate auto needs min and max, between which it is looked for'
                              if name in ('min', 'max') else ', or --measure URL' if name == 'rate' else ''), WRONG)
        else:
            found.take(name, proposal(name))
    if not found.classes:
        if unasked:
            for said in earlier.get('class', ()):
                found.add(said)
        else:
            asked = True
            _ask_classes(system, found, earlier.get('class', ()))
    _complete(found)
    while asked:
        for line in [*_summary(found), *differences(found)]:
            system.say(line)
        said = system.ask(f'Set this up? (yes, no, or what to change: {", ".join([*ASKED, CLASSES])})', 'yes').lower()
        if said in STOP:
            raise CtlError('nothing was changed')
        if said in GO:
            break
        if said in ASKED or said == CLASSES:
            again, proposed = (said, *AFTER.get(said, ())), {'min': '1Mbit'}
            earlier.update({name: getattr(found, name) for name in again if name in ASKED and getattr(found, name)})
            if CLASSES in again:
                earlier['class'], found.classes[:] = [str(cls) for cls in found.classes], []
            for name in again:
                if name in ASKED:
                    setattr(found, name, '')
            for name in again:
                if name == CLASSES:
                    _ask_classes(system, found, earlier['class'])
                    _complete(found)
                elif name not in ('min', 'max') or found.rate == 'auto':
                    ask(name)
        else:
            system.say(f"'{said}' is none of these. Once more:")
    return found


def _complete(found):
    """Adds a class for all other users, if there is none."""
    if all(cls.networks for cls in found.classes):
        found.add('users=1' if all(cls.name != 'users' for cls in found.classes) else 'others=1')


def _summary(found):
    return ['', *(f'  {name:8} {getattr(found, name)}' for name in ASKED if getattr(found, name)),
            f'  {CLASSES:8} ' + ', '.join(f'{cls.name} {cls.weight} ({" ".join(cls.networks) or "everybody else"})'
                                          for cls in found.classes)]


def _not_exchanged(found, routes):
    """A CtlError if the default route goes out to the users."""
    for route in routes:
        if route != found.outside and any(means(name, route) for name in found.inside.split()):
            raise CtlError(f'the default route goes out of {route}, so that is the interface of the access link, and not '
                           f'of the users: are they exchanged?', WRONG)


def _take(system, found, name, said, links, routes):
    if name == 'outside' and routes and said.strip() in links and said.strip() not in routes:
        raise CtlError(f'the default route goes out of {" ".join(routes)}, not of {said.strip()}; an access link without '
                       f'it is given as --outside {said.strip()}', WRONG)
    found.take(name, said)
    try:
        _not_exchanged(found, routes if name == 'inside' else ())
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


def _ask_classes(system, found, earlier):
    """Names in order of importance, weights, and the networks of all but the last, which has all other users. earlier:
    the classes of the last setup, as in an answer file."""
    before = [class_of(said) for said in earlier]
    before.sort(key=lambda cls: not cls.networks)       # the default is the last one
    if [cls.name for cls in before] in (['users'], ['others']):
        before = []
    names, weights = [], []

    def take_names(said):
        names[:] = words(said)
        if [name.lower() for name in names] in (['none'], ['no'], ['-']):
            names.clear()
        for name in names:
            if not NAME.fullmatch(name):
                raise CtlError(f"class name '{name}' must be of letters, digits and ._-, at most 32", WRONG)
            if names.count(name) > 1:
                raise CtlError(f"class '{name}' is named twice: each class has a name of its own", WRONG)

    def take_weights(said):
        weights[:] = words(said.replace(':', ' '))
        if len(weights) != len(names) and len(said.split()) == len(names):
            weights[:] = said.replace(',', '.').split()      # decimal commas
        for weight in weights:
            if not is_weight(weight):
                raise CtlError(f"weight '{weight}' must be a number from 0.001 to 10000", WRONG)
        if len(weights) != len(names):
            raise CtlError(f'{len(weights)} weights for {len(names)} classes: give one for each of {" ".join(names)}',
                           WRONG)

    def take_networks(name, weight, said):
        networks = [network_of(word) for word in words(said)]
        if not networks:
            raise CtlError(f"class '{name}' needs the networks of its users, such as 10.20.1.0/24: only the last class "
                           f'has everybody else', WRONG)
        found.add(f'{name}={weight}={",".join(networks)}')

    known = {cls.name: cls for cls in before}
    _ask(system, CLASSES_ASKED, ' '.join(known), take_names)
    if len(names) > 1:
        _ask(system, WEIGHTS_ASKED.format(' '.join(names)), ' '.join(
            known[name].weight if names == list(known) else str(2 ** power)
            for name, power in zip(names, reversed(range(len(names))))), take_weights)
    for name, weight in list(zip(names, weights))[:-1]:
        _ask(system, NETWORKS_ASKED.format(name), ' '.join(known[name].networks) if name in known else '',
             lambda said, name=name, weight=weight: take_networks(name, weight, said))
    if names:
        found.add(f'{names[-1]}={weights[-1] if weights else 1}')
        system.say(f'{names[-1]}: everybody else')


def _fastest(system, interface):
    """The speed of the interface itself, if the kernel reports it."""
    said = (system.read(f'/sys/class/net/{interface}/speed') or '').strip()
    return canonical(int(said) * 10**6) if said.isdigit() and int(said) else '100Mbit'


def seen(system):
    """(names of the interfaces that are up, those of default routes, {interface with addresses: their networks})."""
    routes = [route['dev'] for family in ('-4', '-6') for route in system.ip(family, 'route', 'show', 'default')
              if 'dev' in route]
    links = [link for link in system.ip('addr', 'show', 'up') if 'ifname' in link]
    networks = {}
    for link in links:
        if link['ifname'] == 'lo' or 'LOOPBACK' in link.get('flags', []) or link.get('master'):
            continue
        found = [network_of(f'{address["local"]}/{address["prefixlen"]}') for address in link.get('addr_info', [])
                 if address.get('scope') == 'global']
        if found:
            networks[link['ifname']] = found
    return [link['ifname'] for link in links], list(dict.fromkeys(routes)), networks
