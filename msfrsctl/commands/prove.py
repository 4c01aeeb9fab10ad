# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl prove: whether scheduling helps on this link. Turns it off and on by turns under the users' own load, and
compares. No connection is cut."""
import contextlib
import os
import re
import textwrap
import time

from .. import accesslog, alternation, comparison, faults, text
from ..errors import DONE, FAILED, FOUND, WRONG, CtlError
from ..start import unit_of

HELP = 'whether scheduling helps on this link: off and on by turns, compared'
HOST = re.compile(r'[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}')
#: Minutes, each with a slice of both. The busy part of a day is within four hours.
LEAST, MOST = comparison.FEWEST, 240
#: Seconds after the last slice in which its requests may end and reach access.log.
LINGER = 10.0
#: Columns of sentences.
WIDTH = 110
TIMER = 'msfrsctl-expire.timer'


def arguments(parser):
    parser.add_argument('--minutes', type=int, default=10, metavar='N',
                        help=f'how long, from {LEAST} to {MOST} (10); each minute has one slice without scheduling')
    parser.add_argument('--ping', metavar='HOST', help='measure round trips to this host, too, one each second')
    parser.add_argument('--seed', type=int, metavar='N', help='of the order of the slices (by the clock)')


def gather(options, site):
    if not LEAST <= options.minutes <= MOST:
        raise CtlError(f'--minutes {options.minutes} must be from {LEAST} to {MOST}: fewer pairs cannot be told from '
                       f'chance', WRONG)
    if options.ping and not HOST.fullmatch(options.ping):
        raise CtlError(f"--ping '{options.ping}' must be an address or a name, such as 192.0.2.1", WRONG)
    _check(site, options.ping)
    log, rates, found, begun = accesslog.log_of(site.conf), [], [], site.system.now()
    seed = options.seed if options.seed is not None else int(begun)
    order = comparison.order(options.minutes * 60 // round(2 * alternation.SLICE), seed)
    site.system.say(f'{len(order)} slices of {alternation.SLICE:.0f} s; Ctrl-C ends it early, with scheduling on '
                    f'again, and after {LEAST} minutes with a result')
    try:
        with _announced(site, begun), alternation.Switch(site) as switch:
            for on in order:
                site.system.say(f'{len(found) + 1} of {len(order)}: {"on" if on else "off"}')
                found.append(switch.slice(on, options.ping))
                if on:
                    rates.append(site.manager.reports()[0]['link']['rate'])
            switch.restore()
            switch.wait(LINGER)
    except KeyboardInterrupt:
        ended = f'ended after {len(found)} of {len(order)} slices; scheduling is on, as before'
        del found[len(found) // 2 * 2:]
        if len(found) < 2 * LEAST:
            raise CtlError(f'{ended}. Nothing can be judged by fewer than {2 * LEAST}', FAILED) from None
        site.system.say(ended)
    rate = sorted(rates)[len(rates) // 2]
    try:
        compared = comparison.compare(found, accesslog.since(log, begun), rate, bool(options.ping))
    except OSError as problem:
        raise CtlError(f'cannot read {log.path}: {problem.strerror}; run msfrsctl as root') from None
    return {'begun': begun, 'ended': site.system.now(), 'seed': seed, 'pairs': len(found) // 2, 'ping': options.ping,
            'slice': alternation.SLICE, 'settle': alternation.SETTLE, 'log': log.path,
            'link': {'rate': rate, 'interface': site.reports[0]['link']['interface']},
            **compared}


@contextlib.contextmanager
def _announced(site, begun):
    """status, why and the page say meanwhile that a test runs."""
    site.system.make_directory(os.path.dirname(site.test_path))
    site.system.write(site.test_path, f'{os.getpid()} {begun:.0f}\n')
    faults.publish_again(site)
    try:
        yield
    finally:
        site.system.remove(site.test_path)
        faults.publish_again(site)


def _check(site, ping):
    """A CtlError if there is nothing that could be turned off, or no fair way to do that."""
    for report in site.reports:
        if not report['scheduling']:
            raise CtlError(f'nothing is scheduled: {text.because(report)}; so there is nothing to compare')
        if report['window'].get('law', 'bytes') != 'bytes' or not report['quantum']:
            raise CtlError('with msfrs_window law=paper or msfrs_quantum none scheduling cannot be turned off and on '
                           'under load: leave these lines out of squid.conf')
    if ping and alternation.round_trip(site, ping) is None:
        raise CtlError(f'{ping} does not answer a ping: name another host, such as the name server of your provider; '
                       f'the program is in the package iputils-ping')
    if not unit_of(site, TIMER) or not site.system.run('systemctl', 'is-active', TIMER):
        site.system.say(f'note: {TIMER} does not run, so if this program is killed (SIGKILL), scheduling stays off '
                        f'until you run msfrsctl set --undo all')


def code(data):
    return FOUND if data['why_not'] else DONE


def show(data):
    off, on, link = data['off'], data['on'], data['link']
    day, begun, ended = (time.strftime(form, time.localtime(data[at])) for form, at in
                         (('%Y-%m-%d', 'begun'), ('%H:%M', 'begun'), ('%H:%M', 'ended')))
    pairs = text.count(data['pairs'], 'pair')
    lines = [f'{day}, {begun} to {ended}: {pairs} of slices of {data["slice"]:.0f} s without and with scheduling,',
             f'the first {data["settle"]:.0f} s of each left out; random order, seed {data["seed"]}',
             f'link: {text.rate(link["rate"])} at {text.safe(link["interface"] or "no interface")}, busy '
             f'({comparison.BUSY:.0%} used or more) for {data["busy"]:.0%} of the time', '']
    rows = [(words, *map(_share if key == 'used' else _time, (row['off'], row['on'])), *_judged(data, row))
            for key, words, _, _ in comparison.MEASURES
            if (row := data['measures'][key]) and (data['ping'] or not key.startswith('rtt'))]
    lines += text.table(('', 'off', 'on', 'better in', 'result'), rows)
    if data['ping']:
        lines.append(f'pings lost: {_share(off["lost"])} off, {_share(on["lost"])} on')
    titles = 'class', 'msfrs', 'requests', 'bytes', 'rate', 'small', 'median', 'p95', 'mean', 'better in', 'result'
    lines += ['', *text.table(titles, [
        (text.safe(name), word, *_class(half['classes'][name]), *judged) for name in on['classes']
        for word, half, judged in (('off', off, ('', '')), ('on', on, _judged(data, data['classes'][name])))
        if name in half['classes']])]
    for said in (f'small: objects of at most {comparison.SMALL >> 10} KB by HTTP, with the median and p95 of their '
                 f'times in access.log; mean: of objects of any size. Of HTTPS only bytes are known, but queue and '
                 f'pings hold for it, too. Result: of the pairs (sign test, p < {comparison.CHANCE}; what differs by '
                 f'less than {comparison.ALIKE:.0%} is alike); by class, of the mean.', _verdict(data)):
        lines += ['', *textwrap.wrap(said, WIDTH)]
    return '\n'.join(lines)


def _verdict(data):
    if data['why_not']:
        return f'Not judged: {data["why_not"]}.'
    by = {so: '; '.join(words for key, words, _, _ in comparison.MEASURES if data['measures'][key]['so'] == so)
          for so in ('better', 'worse')}
    if not any(by.values()):
        return 'No difference that is more than chance. More minutes may show one.'
    return '. '.join(f'With scheduling {so}: {said}' for so, said in by.items() if said) + '.'


def _judged(data, judged):
    return ('-', 'not judged') if data['why_not'] or judged['so'].startswith('not') else \
        (f'{judged["better"]} of {judged["of"]}', judged['so'])


def _class(had):
    return (had['requests'], text.amount(had['bytes']), '-' if had['rate'] is None else text.rate(had['rate']),
            had['small'], _time(had['small_p50']), _time(had['small_p95']), _time(had['mean']))


def _share(value):
    return '-' if value is None else f'{value:.1%}'


def _time(value):
    return '-' if value is None else text.seconds(value)
