# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid: its configuration, its log, its version and the advisories that affect it."""
import os
import re

from . import ERROR, NOTE, OK, WARNING, Finding
from .advisories import ADVISORIES
from .. import accesslog, parsed, text

#: Bytes read from the end of cache.log.
TAIL = 1 << 18
#: A line about refused requests, and the user of the latest.
REFUSED = re.compile(r'requests? refused.* user (\S+): ')
FRONT = ('{} usually is a filter, a NAT or a router in front of many users, who are one user to Squid: put the gateway '
         'before it, or give it a class with the weight of them all (gateway.md); otherwise one device that floods')
#: Most warnings of cache.log that are shown, latest first.
MOST = 5


def configuration(site):
    """The result of `squid -k parse`."""
    done = site.control('parse')
    fatal = re.findall(r'FATAL: (?!Bungled)(.*)', done.err) or re.findall(r'FATAL: (.*)', done.err)
    if not done:
        yield Finding(ERROR, f'squid.conf is refused: {(fatal or [done.err.strip()[-200:] or "no reason given"])[0]}',
                      'correct it; the running Squid goes on with what it has')
    ignored = parsed.errors(done, site.conf) if done else []
    for what, do in ignored:
        yield Finding(ERROR, what, do)
    for line in re.findall(r'WARNING: (.*msfrs.*)', done.err):
        yield Finding(WARNING, line)
    toggle = site.conf.last('msfrs')
    if toggle is None or toggle.words != ('on',):
        yield Finding(ERROR, 'msfrs is off: nothing is scheduled', 'msfrs on, with msfrs_link and msfrs_class')
    elif done and not ignored:
        yield Finding(OK, f'{site.conf_path} is accepted')


def running(site):
    """Whether Squid runs and schedules."""
    for report in site.reports:
        if not report['scheduling']:
            yield Finding(ERROR, f'the running Squid schedules nothing: {text.because(report)}',
                          'squid -k reconfigure, if squid.conf has msfrs on')
        else:
            # Without the figures in parentheses, which are for engineers.
            yield Finding(OK, f'Squid runs and schedules: {text.because(report).partition(" (")[0]}')
            if report['link']['interface'] and not report['link']['metered']:
                yield Finding(WARNING, 'the counter of the interface is not used', 'see the findings about interface')


def access_log(site):
    """Whether access.log has the fields that msfrsctl why needs, and may become full."""
    for line in accesslog.fatal_logs(site.conf):
        yield Finding(WARNING, f'{line.where}: Squid ends when the file system of {line.words[0]} is full',
                      'access_log stdio:FILE ... on-error=drop')
    log = accesslog.log_of(site.conf)
    if not log.explains:
        yield Finding(NOTE, f'{log.path} does not say why a request was held',
                      'use logformat msfrs of the example squid.conf')
    else:
        yield Finding(OK, f'{log.path} says why requests were held')


def cache_log(site):
    """The latest warnings of msfrs."""
    path = site.conf.value('cache_log', None)
    log = site.system.tail(path, TAIL) if path else None
    if log is None:
        return
    said = re.findall(r'\| ((?:WARNING|ERROR): msfrs.*)', log)
    for line in list(dict.fromkeys(reversed(said)))[:MOST]:
        user = REFUSED.search(line)
        yield Finding(NOTE if line.startswith('WARNING') and not user else WARNING, f'{os.path.basename(path)}: {line}',
                      FRONT.format(user[1]) if user else '')
    if not said:
        yield Finding(OK, f'{path} has no warnings of msfrs')


def version(site):
    """Whether Squid is patched, and which advisories it is open to."""
    done = site.system.run(site.squid, '-v')
    number = re.search(r'Version (\d+(?:\.\d+)+)', done.out)
    if not number:
        yield Finding(ERROR, f'{site.squid} does not tell its version', 'say where Squid is with --squid PROGRAM')
        return
    if '--with-msfrs' not in done.out:
        yield Finding(ERROR, f'{site.squid} {number[1]} was built without msfrs', 'install squid-msfrs')
    revision = site.squid_revision
    yield Finding(OK, f'Squid {revision or number[1]}')
    open_ = 0
    for advisory in ADVISORIES:
        state = advisory.state(number[1], revision, site.conf, done.out)
        if state is None:
            continue
        open_ += 1
        yield state
    if revision is None and not number[1].startswith('7'):
        yield Finding(NOTE, "which of Debian's revisions Squid was built from is not known, so advisories may be shown "
                      'that it has fixed', 'build it with squid-patches/build, or install squid-msfrs')
    if not open_:
        yield Finding(OK, 'no known advisory is open')
