# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl report: one archive for a report of a fault, with no addresses and names of yours in it."""
import io
import json
import os
import re
import tarfile
import time

from .. import accesslog, text
from ..anonymise import Anonymiser
from ..errors import FAILED, CtlError
from .doctor import CHECKS, findings

HELP = 'make an archive for a report of a fault, without addresses and names'
LINES = 500         #: of access.log
TAIL = 1 << 18      #: bytes of logs
COMMANDS = {'system.txt': ('uname', '-srm'), 'addresses.txt': ('ip', '-o', 'addr'), 'routes.txt': ('ip', 'route'),
            'routes6.txt': ('ip', '-6', 'route'), 'iptables.txt': ('iptables-save',),
            'ip6tables.txt': ('ip6tables-save',), 'sockets.txt': ('ss', '-s')}
README = '''A report of msfrsctl. Addresses, names, logins, paths of URLs and secrets were replaced or left out, the
same one always by the same stand-in; which addresses share a network can still be seen. Names of classes and of ACLs
stay. Look at it before you send it.
'''


def arguments(parser):
    parser.add_argument('--output', metavar='FILE', help='the archive (msfrs-report-TIME.tar.gz)')
    parser.add_argument('--probe-name', default='www.debian.org', help='as for doctor')


def gather(options, site):
    site.probe_name = options.probe_name
    raw, missing = _raw(site)
    hidden = Anonymiser(_names(site, raw))
    files = {name: (hidden.squid_conf if name.endswith('squid.conf') else hidden.text)(body)
             for name, body in raw.items()}
    files['README'] = README + ''.join(f'Not there: {hidden.text(line)}\n' for line in missing)
    for name, body in files.items():
        if left := hidden.leaks(body):
            raise CtlError(f'{len(left)} names or addresses would still be in {name}, so no archive was written; this '
                           f'is a fault of msfrsctl', FAILED)
    path = options.output or time.strftime('msfrs-report-%Y%m%d-%H%M%S.tar.gz', time.gmtime(site.system.now()))
    _write(path, files, site.system.now())
    return {'file': os.path.abspath(path), 'contents': sorted(files),
            'missing': [hidden.text(line) for line in missing]}


def _raw(site):
    """({name in the archive: text}, [what could not be had])."""
    files, missing = {}, []

    def take(name, ask):
        try:
            files[name] = ask()
        except (CtlError, OSError) as problem:
            missing.append(f'{name}: {problem}')
    take('squid.conf', lambda: _conf(site))
    for path in (site.interception_conf, site.edge_conf, site.edge_iptables_conf):
        if (body := site.system.read(path)) is not None:
            files[os.path.basename(path)] = body
    for page in ('msfrs', 'msfrs-metrics', 'info'):
        take(f'mgr-{page}.txt', lambda page=page: site.manager.page(page))
    take('doctor.json', lambda: json.dumps(list(findings(site, CHECKS)), indent=1) + '\n')
    take('access.log', lambda: _last_lines(accesslog.log_of(site.conf).path))
    take('cache.log', lambda: site.system.tail(site.conf.value('cache_log', ''), TAIL) or '')
    for name, words in {**COMMANDS, 'squid-version.txt': (site.squid, '-v')}.items():
        done = site.system.run(*words)
        if done:
            files[name] = done.out
        else:
            missing.append(f'{name}: {done.err.strip() or done.code}')
    return files, missing


def _conf(site):
    """All lines as Squid sees them, with their places."""
    kept, file = [], None
    for line in site.conf.lines:
        if line.file != file:
            file = line.file
            kept.append(f'# {file}')
        kept.append(line.text)
    return '\n'.join(kept) + '\n'


def _last_lines(path):
    lines = []
    for _, data in accesslog.blocks(path):
        lines = data.decode(errors='replace').splitlines() + lines
        if len(lines) >= LINES:
            break
    return '\n'.join(lines[-LINES:]) + '\n'


def _names(site, raw):
    """Names that stand alone in texts: of this machine, and logins."""
    names = {site.system.run('hostname').out.strip()}
    try:
        for report in site.reports:
            for row in [*report.get('held', ()), *report.get('top_users', ())]:
                names |= {str(row['user']), str(row.get('host', ''))}
        reader = accesslog.Reader(accesslog.log_of(site.conf).format)
        for line in raw.get('access.log', '').splitlines():
            record = reader(line.encode())
            names |= {record.login or '', record.user or ''} if record else set()
    except CtlError:
        pass        # what is not known cannot be in the texts by that way
    # Short words and numbers would be found in everything; addresses and domains are known by their form.
    return {name for name in names if len(name) > 2 and not name.isdigit() and name != 'localhost'
            and not re.search(r'[.:]', name)}


def _write(path, files, now):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w:gz') as archive:
        for name, body in sorted(files.items()):
            data = body.encode(errors='replace')
            info = tarfile.TarInfo(f'msfrs-report/{name}')
            info.size, info.mtime = len(data), int(now)
            archive.addfile(info, io.BytesIO(data))
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'wb') as file:
            file.write(packed.getvalue())
    except OSError as problem:
        raise CtlError(f'cannot write {path}: {problem.strerror}; choose another with --output FILE') from None


def show(data):
    lines = [f'wrote {text.safe(data["file"], 300)}: {", ".join(data["contents"])}']
    lines += [f'note: not there: {text.safe(line, 300)}' for line in data['missing']]
    return '\n'.join([*lines, 'look at it before you send it'])
