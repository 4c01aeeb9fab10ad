# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl set: changes the rate or a class's weight or quota, or boosts one user, for a time, while Squid runs."""
import ipaddress
import re
import time
from dataclasses import asdict
from types import SimpleNamespace
from urllib.parse import unquote

from .. import text
from ..errors import WRONG, CtlError
from ..own import Change, OwnFile, path_of
from ..units import is_weight, rate_of, time_of, typed_rate
from ..users import user_of

HELP = 'change rate, weight, quota or one user\'s class for a time, while Squid runs'
MAC = re.compile(r'[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}')
LOGIN = re.compile(r'[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}')
#: Boosts in force at which requests of msfrs-page are refused. It need not be trusted, and each boost costs a
#: reconfiguration.
MOST_ASKED = 10
FORMS = 'rate 18Mbit; weight gold 8; quota guests 2GB/day; boost 10.20.1.7 for 2h'
#: `2GB/day`, `2 GB a day`, `500M per week`.
QUOTA = re.compile(r'(\d{1,9}(?:[.,]\d{1,3})?)\s*([KMGT]?)B?\s*(?:/|a|an|per|each|every)\s*(hour|day|week|month)',
                   re.IGNORECASE)


def arguments(parser):
    parser.add_argument('what', nargs='?', choices=('rate', 'weight', 'quota', 'boost'),
                        help='without it, changes are listed')
    parser.add_argument('value', nargs='*', metavar='VALUE', help=f'as in: {FORMS}')
    parser.add_argument('--for', dest='lasts', metavar='TIME', help='how long, such as 30min or 2d (1h)')
    parser.add_argument('--keep', action='store_true', help='until --undo')
    parser.add_argument('--class', dest='cls', metavar='NAME', help='boost: the class (the one with the most weight)')
    parser.add_argument('--weight', metavar='N', help='boost: a class of its own with this weight')
    parser.add_argument('--undo', metavar='ID|all', help='take a change back')
    parser.add_argument('--expire', action='store_true', help='take back what has expired, and grant the boosts that '
                        'msfrs-page asks for; a timer calls this')


def gather(options, site):
    _check(options)
    if options.expire and not _included(site):
        return {'file': None, 'changes': [], 'undone': [], 'notes': []}
    path = path_of(site)
    with site.system.lock(site.conf.directory):
        own, undone, notes, now = OwnFile(site, path), [], [], site.system.now()
        for change in own.latest_first():
            asked = options.undo in ('all', str(change.id))
            if not asked and (change.until is None or change.until > now):
                continue
            try:
                own.undo(change)
                undone.append(change)
            except CtlError as problem:     # a change that cannot be undone must not block the others
                if asked:
                    raise
                notes.append(str(problem))
        if options.undo and options.undo != 'all' and str(options.undo) not in {str(change.id) for change in undone}:
            raise CtlError(f'there is no change {options.undo}; msfrsctl set lists them')
        made = _make(options, site, own, now) if options.what else None
        granted = _grant(site, own, now, notes) if options.expire else []
        if undone or made or granted:
            notes += [note for note in [own.apply()] if note]
        return {'file': path, 'changes': [asdict(change) for change in own.changes().values()],
                'made': made and asdict(made), 'undone': [asdict(change) for change in undone],
                'granted': [asdict(change) for change in granted], 'notes': notes, 'now': now}


def _grant(site, own, now, notes):
    """Boosts for an hour the users for whom msfrs-page asks, by files with their names in the directory that `boost` in
    page.conf sets. Returns the changes."""
    directory, granted = site.page_setting('boost'), []
    for name in site.system.take(directory, '.boost', 2 * MOST_ASKED) if directory else ():
        user = unquote(name)
        try:
            if sum(change.what == 'boost' for change in own.changes().values()) >= MOST_ASKED:
                raise CtlError(f'{MOST_ASKED} boosts are in force, the most that msfrs-page may ask for')
            asked = SimpleNamespace(what='boost', value=user, lasts=None, keep=False, cls=None, weight=None)
            granted.append(_make(asked, site, own, now))
        except CtlError as problem:
            notes.append(f'msfrs-page asks for a boost of {user}: {problem}')
    return granted


def _included(site):
    try:
        return bool(path_of(site))
    except CtlError:
        return False


def _check(options):
    _duration(options)
    options.value = ' '.join(options.value)
    if options.what and not options.value:
        raise CtlError(f'set {options.what} needs a value, as in: {FORMS}', WRONG)
    if options.what and (options.undo or options.expire):
        raise CtlError('a change, --undo and --expire exclude each other: give one of them', WRONG)
    if options.lasts and options.keep:
        raise CtlError('--for and --keep exclude each other: give one of them', WRONG)
    if (options.cls or options.weight) and options.what != 'boost' or options.cls and options.weight:
        raise CtlError('--class and --weight are for boost, and exclude each other: give one of them', WRONG)


def _duration(options):
    """The last words `for 2h`, `for 30 minutes` or, of a boost, `2h`."""
    words = options.value
    at = next((n for n in range(1, len(words)) if words[n].lower() == 'for'), None)
    if at is not None:
        said, options.value = ' '.join(words[at + 1:]), words[:at]
    elif options.what == 'boost' and len(words) > 1:
        said, options.value = ' '.join(words[1:]), words[:1]
    else:
        return
    if options.lasts:
        raise CtlError(f'for {said} and --for {options.lasts}: give one of them', WRONG)
    options.lasts = said


def _make(options, site, own, now):
    until = None if options.keep else now + time_of(options.lasts or '1h')
    change = Change(own.new_id(), options.what, '', '', options.value, until)
    {'rate': _rate, 'weight': _weight, 'quota': _quota, 'boost': _boost}[options.what](options, site, own, change)
    return change


def _rate(options, site, own, change):
    change.now = typed_rate(options.value)
    line = site.conf.last('msfrs_link')
    if line and line.option('rate') == 'auto':
        raise CtlError(f'{line.where}: with rate=auto the rate is found; change min= and max= there')
    own.set_option('msfrs_link', None, 'rate', change.now, change)


def _weight(options, site, own, change):
    del site
    name, _, weight = re.sub(r'\s*[=\s]\s*', '=', options.value.replace(',', '.')).partition('=')
    if not name or not is_weight(weight):
        raise CtlError(f"weight '{options.value}' must be CLASS and N, N from 0.001 to 10000, such as gold 8", WRONG)
    change.of, change.now = name, weight
    own.set_option('msfrs_class', name, 'weight', weight, change)


def _quota(options, site, own, change):
    name, _, said = re.sub(r'^(\S+?)(\s*=\s*|\s+)', r'\1=', options.value).partition('=')
    match = QUOTA.fullmatch(said)
    if not match:
        raise CtlError(f"quota '{options.value}' must be CLASS and BYTES/PERIOD, PERIOD hour, day, week or month, such "
                       f'as guests 2GB/day', WRONG)
    line = next((line for line in site.conf.all('msfrs_class') if line.words[:1] == (name,)), None)
    if line and not line.option('quota'):
        raise CtlError(f'{line.where}: class {name} has no quota that could be changed; add the options quota= and '
                       f'over= there')
    number, unit, period = match[1].replace(',', '.'), match[2].upper(), match[3].lower()
    change.of, change.now = name, f'{number}{unit}B/{period}'
    own.set_option('msfrs_class', name, 'quota', change.now, change)


def _boost(options, site, own, change):
    user, acl = user_of(options.value, site.conf), f'msfrsctl_boost_{change.id}'
    lines = [f'acl {acl} {acl_of(user, site.conf)}']
    own_lines = [line for line in site.conf.lines if line.name == 'msfrs_access']
    include = site.conf.lines.index(site.conf.covers(own.path))
    early = next((line for line in own_lines if site.conf.lines.index(line) < include), None)
    if early:
        raise CtlError(f'{early.where}: this msfrs_access line comes before {own.path} is included, and would win; '
                       f'move the line {site.conf.covers(own.path).text} above it')
    for other in own.changes().values():
        if other.what == 'boost' and other.of == user:
            raise CtlError(f'{user} has a boost already; first: msfrsctl set --undo {other.id}')
    classes = {line.words[0]: line.option('weight') for line in site.conf.all('msfrs_class') if line.words}
    if options.weight:
        if not is_weight(options.weight):
            raise CtlError(f"--weight '{options.weight}' must be from 0.001 to 10000", WRONG)
        name = f'msfrsctl-boost-{change.id}'
        lines.append(f'msfrs_class {name} weight={options.weight}')
    else:
        name = options.cls or max(classes, key=lambda cls: float(classes[cls] or 0), default='')
        if name not in classes:
            raise CtlError(f"class '{name}' is unknown; known are {', '.join(classes) or 'none'}", WRONG)
    lines.append(f'msfrs_access {name} allow {acl}')
    change.of, change.now = user, name
    own.add_block(lines, change)


def acl_of(user, conf):
    """Type and value of an ACL that matches a user, by the kind of users that msfrs_user sets."""
    try:
        return f'src {ipaddress.ip_network(user, strict=False)}'
    except ValueError:
        pass
    if MAC.fullmatch(user):
        return f'arp {user}'
    if not LOGIN.fullmatch(user):
        raise CtlError(f"user '{user}' must be an address, a network, a hardware address or a login of letters, "
                       f"digits and ._@+-", WRONG)
    if not conf.all('auth_param'):
        raise CtlError(f"user '{user}' is no address, and squid.conf has no auth_param by which there could be logins")
    return f'proxy_auth {user}'


def show(data):
    lines = [f'note: {text.safe(note, 400)}' for note in data['notes']]
    lines += [f'granted: {_said(change)}' for change in data.get('granted', ())]
    lines += [f'undone: {_said(change)}' for change in data['undone']]
    for change in data['changes']:
        left = 'until it is undone' if change['until'] is None else \
            f'until {time.strftime("%Y-%m-%d %H:%M", time.localtime(change["until"]))} ' \
            f'({text.duration(change["until"] - data["now"])})'
        lines.append(f'{change["id"]}: {_said(change)}, {left}')
    return '\n'.join(lines or ['no change is in force'])


def _said(change):
    if change['what'] == 'boost':
        return f'{text.safe(change["of"])} is in class {text.safe(change["now"])}'
    of = f' of {text.safe(change["of"])}' if change['of'] else ''
    said = _rate_text if change['what'] == 'rate' else text.safe
    now, was = said(change['now']), said(change['was'])
    return f'{change["what"]}{of} is {now} instead of {was}'


def _rate_text(said):
    """A rate as msfrs_link has it, for people."""
    try:
        return text.rate(rate_of(said))
    except CtlError:
        return text.safe(said)      # auto
