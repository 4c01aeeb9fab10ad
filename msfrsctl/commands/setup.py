# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl setup: asks for unknown settings, writes the configuration of Squid, interception and msfrs-edge, checks it
and starts everything."""
import contextlib
import dataclasses
import difflib
import os
import shlex

from .. import answers as questions
from .. import faults, interview, parsed, state, text, theirs, written
from ..checks import ERROR, WARNING
from ..errors import FAILED, WRONG, CtlError
from ..journal import Journal
from ..merge import merged
from ..own import OwnFile, included, why_refused
from ..site import FORWARDING
from ..squidconf import SquidConf
from ..start import DROP_IN, EDGE, PAGE, Start, not_forwarded, unit_of
from ..summary import lines_of
from .doctor import findings

HELP = 'configure and start everything, or take it back'
CERTIFICATE = 'msfrsctl-intercept.pem'
#: Checks of doctor whose findings are shown at the end.
LOOKED_AT = ('interface', 'interception', 'ipv6', 'buffers', 'clock', 'rights')


def arguments(parser):
    parser.add_argument('--yes', action='store_true', help='ask nothing: take what was given and what is seen')
    parser.add_argument('--answers', metavar='FILE', help='lines NAME = VALUE, names as of these options')
    for name, what in (('outside', 'interface of the access link'), ('inside', 'interfaces of the users'),
                       ('users', "the users' networks"), ('rate', 'of the downlink, or auto'),
                       ('min', 'with rate auto'), ('max', 'with rate auto'),
                       ('edge', 'yes (default): msfrs-edge holds what bypasses Squid to its share, too; or no'),
                       ('uplink', 'its rate, if msfrs-edge is to schedule it in place of what bypasses Squid'),
                       ('mode', 'redirect (default) or tproxy'), ('quic', 'reject (default) or allow'),
                       ('probe', 'page that must come through Squid before users are sent there, or no: none '
                                 f'({questions.Answers.probe})')):
        parser.add_argument(f'--{name}', help=what)
    parser.add_argument('--firewall', choices=('ask', 'add'), default='ask',
                        help='add: if the firewall drops connections of users to Squid, add the rule that accepts them')
    parser.add_argument('--measure', metavar='URL', help='measure the rate with this large file on a server')
    parser.add_argument('--class', dest='cls', action='append', metavar='NAME=WEIGHT[=NETWORK,...]',
                        help='again for each class; the one without networks is the default')
    parser.add_argument('--replace', action='store_true', help='also replace files that msfrsctl did not write')
    parser.add_argument('--no-start', action='store_true', help='write and check, but start nothing')
    parser.add_argument('--print', nargs='?', const='files', choices=('files', 'answers'),
                        help='print what would be written, or a file for --answers, and change nothing')
    parser.add_argument('--undo', action='store_true', help='take back all that setup did')


def gather(options, site):
    try:
        return _undo(options, site) if options.undo else _set_up(options, site)
    except KeyboardInterrupt:   # while it changes something, it is caught below
        raise CtlError('interrupted: nothing was changed' if not options.undo else
                       'interrupted: msfrsctl setup --undo goes on with what is left', WRONG) from None


def _set_up(options, site):
    found = _answers(options, site)
    if options.print == 'answers':
        return {'answers': dataclasses.asdict(found), 'answer_file': found.text(), 'done': [], 'notes': []}
    files = _files(found, site)
    keeps = _kept(site, files)
    if options.print:
        return {'answers': dataclasses.asdict(found), 'would_write': files, 'done': [], 'notes': []}
    if site.system.euid():
        raise CtlError('setup needs root: sudo msfrsctl setup')
    interview.need_links(interview.seen(site.system)[0], f'{found.outside} {found.inside}')
    site.need_squid()
    if found.edge == 'yes':
        site.need_edge()
    journal, done, notes, begun = Journal(site), [], [], site.system.monotonic()
    keeping, lost = _with_theirs(files, site, journal)
    notes += [f'not kept in {path}, as setup writes that line itself: {line}' for path, line in lost]

    def write(paths):
        for path in paths:
            journal.write(path, keeping.get(path, files[path]), base=files[path])
            done.append(f'wrote {path}' + (', and kept what you had changed there' if path in keeping else ''))
    # Written late: while the file exists, starting Squid may also start the interception of users.
    late = [] if options.no_start else [site.interception_conf]
    off = site.system.read(site.off_path)
    _may_write(options, site, journal, files)
    locked = contextlib.ExitStack()
    try:
        locked.enter_context(site.system.lock(os.path.dirname(os.path.abspath(site.conf_path))))    # against the watch
        journal.begin(state.look(site))
        _certificate(site, journal, done)
        write(path for path in files if path not in late)
        said = site.control('parse')
        if not said:
            raise CtlError(f'Squid refuses the configuration: {why_refused(said)}', FAILED)
        if ignored := parsed.errors(said, SquidConf(site.system, site.conf_path)):
            raise CtlError('Squid does not do all that its configuration says: '
                           + '; '.join(f'{what} ({do})' for what, do in ignored), FAILED)
        if not options.no_start:
            start, say = Start(site, journal, found, done, notes), site.system.say
            say('starting Squid; if it has connections, that takes its shutdown_lifetime ...')
            start.squid()
            say('trying a page through Squid ...')
            start.probe()
            say('starting msfrs-edge and the page ...')
            start.edge()
            start.page()
            say("trying the users' way through the firewall, and sending them to Squid ...")
            write(late)
            start.reachable(options.firewall == 'add', not options.yes)
            site.system.remove(site.off_path)
            start.interception()
            start.probe()
            faults.publish(site, *(fault for fault in faults.published(site) or () if fault.code in
                                   (faults.LOG, faults.NAMES)))
            notes += [f'{row["what"]}; {row["do"]}' for row in findings(site, LOOKED_AT)
                      if row['level'] in (ERROR, WARNING)]
        journal.answers = found.text()
    except (CtlError, KeyboardInterrupt) as problem:
        said = [str(problem) or 'interrupted']
        if off is not None:
            site.system.write(site.off_path, off)
        site.system.say('taking back what was done ...')
        with site.system.uninterrupted():
            back = journal.roll_back()
        said.append(f'taken back: {", ".join(what for what, was in back if was) or "nothing had been changed"}')
        said += [f'not taken back: {what}' for what, was in back if not was]
        if not options.yes:
            said.append(f'the same answers again: {_command(found)}')
        raise CtlError('; '.join(said), getattr(problem, 'code', FAILED)) from None
    finally:
        locked.close()
    return {'answers': dataclasses.asdict(found), 'done': done, 'notes': notes, 'journal': journal.path,
            'seconds': round(site.system.monotonic() - begun, 1),
            'summary': [] if options.no_start else [*lines_of(found, site), *keeps]}


def _answers(options, site):
    """All Answers: flags have precedence over the file, the file over detected values; the rest is asked for."""
    given = {}
    if options.answers:
        body = site.system.read(options.answers)
        if body is None:
            raise CtlError(f'cannot read {options.answers}, the file of --answers; msfrsctl setup --print answers '
                           f'makes one', WRONG)
        given = questions.read_file(options.answers, body)
    flags = {name: getattr(options, name) for name in questions.CHECKS} | {'class': options.cls}
    given |= {name: said for name, said in flags.items() if said is not None}
    return interview.collect(site.system, given, options.yes, options.measure, _earlier(given, site),
                             lambda found: _differences(found, site))


def _earlier(given, site):
    """The answers of the last setup, {name: value}; without those that would contradict what is given now."""
    journal = Journal(site)
    if not journal.answers:
        return {}
    earlier = questions.read_file(journal.path, journal.answers)
    if given.get('rate', 'auto') != 'auto':
        earlier = {name: said for name, said in earlier.items() if name not in ('min', 'max')}
    for name in ('edge', 'uplink'):
        if name not in given and not {'edge', 'uplink'} & set(given) and name in earlier:
            given[name] = earlier[name]
    for name in ('mode', 'quic', 'probe'):
        if given.get(name) is None and name in earlier:
            given[name] = earlier[name]
    return earlier


def _differences(found, site):
    """Lines for the user: what these answers change in files that are there."""
    files, journal = _files(found, site), Journal(site)
    keeping, lost = _with_theirs(files, site, journal)
    lines = []
    for path, body in files.items():
        before, after = site.system.read(path), keeping.get(path, body)
        if before is not None and before != after:
            changed = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm='', n=0)
            lines += [f'  {path}:', *(f'    {line}' for line in changed if not line.startswith(('---', '+++', '@@')))]
    return [*_kept(site, files), *lines,
            *(f'  not kept in {path}, as setup writes that line itself: {line}' for path, line in lost)]


def _with_theirs(files, site, journal):
    """({path: text with what a person has changed since the last setup}, [(path, line that cannot be kept)])."""
    keeping, lost = {}, []
    for path, body in files.items():
        base, now = journal.base(path), site.system.read(path)
        if base is not None and now is not None and now != base:
            text, gone = merged(base, now, body)
            lost += [(path, line) for line in gone]
            if text != body:
                keeping[path] = text
    return keeping, lost


def _files(found, site):
    """{path: text} of all files to be written."""
    conf = SquidConf(site.system, site.conf_path) if site.system.exists(site.conf_path) else None
    directory = os.path.dirname(os.path.abspath(site.conf_path))
    own = included(conf, site.system) if conf else None
    files = {}
    if own is None:
        own = os.path.join(directory, 'msfrsctl.conf')
        files[site.conf_path] = (f'include {own}\n{site.system.read(site.conf_path)}' if conf
                                 else written.WHOLE.format(own=own))
    others = None
    if conf:
        others = conf
        others.lines = [line for line in conf.lines if line.file != own]
        theirs.refuse(others, own, written.PORTS[found.mode])
    files[own] = written.squid_part(found, others, f'{directory}/{CERTIFICATE}',
                                    f'{site.log_directory()}/msfrs-access.log')
    files[site.interception_conf] = written.iptables_conf(found, site)
    if not_forwarded(found, site) or site.system.exists(FORWARDING):
        files[FORWARDING] = written.forwarding(found)
    if found.edge == 'yes':
        files[site.edge_conf] = written.downlink_conf(found, site)
        files[site.edge_iptables_conf] = written.downlink_iptables_conf(found)
        if unit_of(site, EDGE):
            files[DROP_IN] = written.drop_in(site.squid_group)
    elif found.uplink:
        files[site.edge_conf] = written.uplink_conf(found)
        files[site.edge_iptables_conf] = written.uplink_iptables_conf(found)
    if unit_of(site, PAGE) and (not site.system.exists(site.page_conf) or Journal(site).wrote(site.page_conf)):
        files[site.page_conf] = written.page_conf(others)
    # squid.conf includes the other file, so it is written last.
    return {path: files[path] for path in sorted(files, key=lambda path: path == site.conf_path)}


def _kept(site, files):
    """Lines about settings of others in squid.conf."""
    if not site.system.exists(site.conf_path):
        return []
    others = SquidConf(site.system, site.conf_path)
    others.lines = [line for line in others.lines if line.file not in files or line.file == others.path]
    return theirs.kept(others)


def _may_write(options, site, journal, files):
    """Asks for permission to replace a file that msfrsctl did not write, or raises a CtlError."""
    for path, body in files.items():
        before = site.system.read(path)
        if before is None or before == body or journal.wrote(path) or journal.base(path) is not None or options.replace:
            continue
        what = f'put "{body.partition(chr(10))[0]}" before the first line of {path}' if body.endswith(before) else \
            f'replace {path}'
        if options.yes and body.endswith(before):
            continue        # its contents are kept, and --yes has been given
        if options.yes or site.system.ask(f'May setup {what}? (yes or no)', 'no') != 'yes':
            raise CtlError(f'{path} is there and not of msfrsctl: move it away, or let it be replaced with --replace '
                           f'(setup --undo brings it back)')


def _certificate(site, journal, done):
    path = os.path.join(os.path.dirname(os.path.abspath(site.conf_path)), CERTIFICATE)
    if site.system.exists(path):
        return
    made = site.system.run('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '3650', '-subj',
                           '/CN=gateway', '-keyout', '/dev/stdout', '-out', '/dev/stdout')
    if not made or 'PRIVATE KEY' not in made.out:
        raise CtlError(f'no certificate could be made: {made.err.strip()[-200:] or "openssl failed"}', FAILED)
    journal.write(path, made.out, 0o640)
    user = site.squid_user
    if site.system.ids(user):
        site.system.run('chgrp', user, path)
    done.append(f'made {path}')


def _command(found):
    """The command line that gives all these answers."""
    words = ['msfrsctl', 'setup']
    for name in questions.CHECKS:
        if getattr(found, name) != getattr(questions.Answers, name):
            words += [f'--{name}', getattr(found, name)]
    for cls in found.classes:
        words += ['--class', str(cls)]
    return shlex.join(words)


def _undo(options, site):
    journal = Journal(site)
    if not journal:
        raise CtlError(f'there is no {journal.path}, in which setup records what it does: there is nothing to undo')
    if site.system.euid():
        raise CtlError('setup --undo needs root')
    if site.system.exists(site.conf_path) and (own := included(site.conf, site.system)) and site.system.exists(own):
        OwnFile(site, own).undo_all()       # otherwise it would differ from setup's version
    before = journal.before
    back = journal.undo(force=options.replace)
    site.system.remove(site.off_path)
    site.system.remove(site.faults_path)
    site.look_again()
    differs = [] if before is None else state.differences(before, state.look(site))
    kept = [what for what, was in back if was and ('as you had changed it' in what)]
    return {'done': [what for what, was in back if was],
            'notes': [*(f'not done: {what}' for what, was in back if not was),
                      *(f'not as before: {what}' for what in differs)],
            'as_before': before is not None and not differs and not kept and all(was for _, was in back)}


def show(data):
    if 'answer_file' in data:
        return data['answer_file'].rstrip('\n')
    if 'would_write' in data:
        return '\n'.join(f'# ---- {path}\n{body}' for path, body in data['would_write'].items())
    lines = [*(text.safe(line, 300) for line in data['done']),
             *(f'note: {text.safe(note, 300)}' for note in data['notes'])]
    if data.get('as_before'):
        lines.append('All is as before the first setup: files, units, rules, sysctls and queueing disciplines.')
    if data.get('summary'):
        lines += ['', f'Set up in {text.seconds(data["seconds"])}:']
        lines += [text.safe(said, 300) for said in data['summary']]
    return '\n'.join(lines)
