# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduler plugins that are missing or unsuitable: Squid does not start, and reports what it expected."""
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from background import PATIENCE
from fieldtrial.base.paths import ROOT
from fieldtrial.site.netns import temporary_directory
from gateway import LISTENING, NARROW, harm
from installation import SQUID

BASE = '''\
http_port 3128
cache_effective_user proxy
cache_mem 8 MB
pid_filename none
coredump_dir none
visible_hostname gateway.test
'''
#: Squid's message about a bad configuration: 6 repeats the line, 7 has it only in the first message.
EXPECTED = re.compile('FATAL: (Bungled|bad configuration:|configuration failure:)|Terminated abnormally')
ON = '''\
msfrs on
msfrs_link rate=2Mbit
msfrs_class gold weight=4
msfrs_class bronze weight=1 default
'''


@pytest.fixture
def place():
    """A directory owned by root, with a subdirectory that Squid's effective user may write to."""
    with temporary_directory() as made:
        writable = pathlib.Path(made) / 'proxy'
        writable.mkdir()
        shutil.chown(writable, 'proxy', 'proxy')
        yield pathlib.Path(made)


def squid(place, fabric, text, *arguments):
    """Runs Squid with this configuration, with which it must exit on its own."""
    conf = place / 'squid.conf'
    conf.write_text(f'{BASE}cache_log {place}/proxy/cache.log\naccess_log none\n{text}')
    argv = [str(SQUID), '-f', str(conf), *arguments]
    return subprocess.run(fabric.host('gw').enter(argv), capture_output=True, text=True, timeout=PATIENCE, check=False)


def line_of(place, beginning):
    """FILE:LINE of a directive, as in messages."""
    lines = (place / 'squid.conf').read_text().splitlines()
    return f'{place}/squid.conf:{next(n for n, line in enumerate(lines, start=1) if line.startswith(beginning))}'


def refused(place, fabric, text, *arguments):
    """The last messages of a Squid that did not start."""
    done = squid(place, fabric, text, *arguments)
    assert done.returncode == 1, done
    said = done.stderr
    assert [line for line in harm(said) if not EXPECTED.search(line)] == []
    told = [line for line in said.splitlines() if f'{place}/squid.conf:' in line and 'WARNING' not in line]
    assert len(told) == 1, said
    return told[0]


PLUGIN = '''
#include "plugin/msfrs_plugin.h"
static int admit() { return 0; }
static const struct msfrs_aqm_ops aqm = { .admit = (void *)admit };
__attribute__((visibility("default"))) const struct msfrs_plugin msfrs_plugin = {
    .magic = MSFRS_PLUGIN_MAGIC, .abi_major = MSFRS_ABI_MAJOR + MAJOR, .abi_minor = MSFRS_ABI_MINOR + MINOR,
    .size = sizeof(struct msfrs_plugin), .kind = KIND, .name = "other", .summary = "none", .paper = "none", .aqm = &aqm,
    .ops_size = sizeof(aqm),
};
'''


def build_plugin(place, major=0, minor=0, kind='MSFRS_SCHED'):
    path = place / 'other.so'
    compile_shared(path, PLUGIN, f'-DMAJOR={major}', f'-DMINOR={minor}', f'-DKIND={kind}')
    return path


def copies_in_memory(path):
    """Processes that have loaded this plugin, whatever its file contains now."""
    def mapped(process):
        try:
            return f'/memfd:msfrs:{path} ' in (process / 'maps').read_text()
        except OSError:
            return False    # it has exited
    return [int(process.name) for process in pathlib.Path('/proc').glob('[0-9]*') if mapped(process)]


def compile_shared(path, text, *options):
    subprocess.run(['cc', '-shared', '-fPIC', '-w', f'-I{ROOT}/src', *options, '-xc', '-', '-o', str(path)], input=text,
                   text=True, check=True)


BOTH = pytest.mark.parametrize('arguments', (('-N',), ('-k', 'parse')), ids=('start', 'parse'))


def abi():
    """(major, minor) that this Squid requires."""
    text = (ROOT / 'src/plugin/msfrs_plugin.h').read_text()
    return tuple(int(re.search(rf'#define MSFRS_ABI_{part} (\d+)', text)[1]) for part in ('MAJOR', 'MINOR'))


@BOTH
@pytest.mark.sanitized
def test_a_scheduler_that_is_not_there(place, fabric, arguments):
    said = refused(place, fabric, ON + f'msfrs_arbiter {place}/nowhere.so\n', *arguments)
    assert said.endswith(f"{line_of(place, 'msfrs_arbiter')}: msfrs_arbiter: no scheduler '{place}/nowhere.so': "
                         f'{place}/nowhere.so: No such file or directory'), said


@BOTH
def test_a_name_that_no_scheduler_has(place, fabric, arguments):
    """The message lists those that exist, and where they are."""
    said = refused(place, fabric, ON + 'msfrs_arbiter nosuch\n', *arguments)
    assert re.search(r"msfrs_arbiter: no scheduler 'nosuch': (/\S+)/nosuch\.so: No such file or directory; "
                     r'\1 has:.* fifo.* msf\b', said), said
    assert not re.search(r' (red|faba)\b', said), 'AQMs'
    said = refused(place, fabric, ON + 'msfrs_admission nosuch\n', *arguments)
    assert re.search(r' has:.* faba.* red\b', said) and not re.search(r' (msf|fifo)\b', said.partition('has:')[2]), said


@BOTH
@pytest.mark.sanitized
@pytest.mark.parametrize('major, minor', ((1, 0), (0, 1)), ids=('other-major', 'newer-minor'))
def test_a_scheduler_of_another_abi(place, fabric, arguments, major, minor):
    path = build_plugin(place, major=major, minor=minor)
    said = refused(place, fabric, ON + f'msfrs_arbiter {path}\n', *arguments)
    wanted, newest = abi()
    got = f'{wanted + major}.{newest + minor}'
    assert said.endswith(f"{line_of(place, 'msfrs_arbiter')}: msfrs_arbiter: plugin {path} was built for ABI {got}, "
                         f'expected ABI {wanted}.0 to {wanted}.{newest}; rebuild it'), said


@BOTH
@pytest.mark.sanitized
def test_a_plugin_of_another_kind(place, fabric, arguments):
    path = build_plugin(place, kind='MSFRS_AQM')
    said = refused(place, fabric, ON + f'msfrs_arbiter {path}\n', *arguments)
    assert said.endswith(f'msfrs_arbiter: plugin {path} is an AQM, expected a scheduler'), said
    said = refused(place, fabric, ON + 'msfrs_admission msf\n', *arguments)
    assert re.search(r'msfrs_admission: plugin \S+/msf\.so is a scheduler, expected an AQM$', said), said


@BOTH
@pytest.mark.sanitized
def test_a_file_that_is_no_plugin(place, fabric, arguments):
    for content, message in ((b'no shared object', 'cannot be loaded'), (b'', 'cannot be loaded')):
        path = place / 'other.so'
        path.write_bytes(content)
        assert f'plugin {path} {message}' in refused(place, fabric, ON + f'msfrs_arbiter {path}\n', *arguments)
    compile_shared(path, 'int something;')
    assert (f"plugin {path} is not an msfrs plugin: it has no symbol 'msfrs_plugin'" in
            refused(place, fabric, ON + f'msfrs_arbiter {path}\n', *arguments))


@BOTH
@pytest.mark.parametrize('own', (False, True), ids=('directory', 'file'))
def test_a_plugin_that_others_could_have_written(place, fabric, arguments, own):
    """Squid may become root, so it loads no code of others: neither a file owned by the effective user, nor root's file
    in a directory where that user may replace it."""
    path = build_plugin(place if own else place / 'proxy')
    if own:
        shutil.chown(path, 'proxy')
    said = refused(place, fabric, ON + f'msfrs_arbiter {path}\n', *arguments)
    theirs = path if own else path.parent
    assert said.endswith(f'msfrs_arbiter: plugin {path} cannot be loaded: {theirs} can be changed by user proxy, and a '
                         f'process that may become root takes code from root alone: chown root {theirs}, or load it '
                         'from where only root may write'), said


@BOTH
def test_a_parameter_that_the_scheduler_does_not_have(place, fabric, arguments):
    said = refused(place, fabric, ON + 'msfrs_arbiter msf wake=never\n', *arguments)
    assert 'wake' in said and 'never' in said and 'virtual' in said and 'paper' in said, said
    assert line_of(place, 'msfrs_arbiter') in said
    said = refused(place, fabric, ON + 'msfrs_arbiter fifo depth=3\n', *arguments)
    assert 'depth' in said and line_of(place, 'msfrs_arbiter') in said, said


WRONG = '''
#include "plugin/msfrs_plugin.h"
static struct msfrs_item *pick() { return 0; }
static void nothing() {}
static const struct msfrs_sched_ops sched = { .enqueued = (void *)nothing, .pick = (void *)pick,
    .picked = (void *)nothing, .removed = (void *)nothing };
__attribute__((visibility("default"))) const struct msfrs_plugin msfrs_plugin = {
    .magic = MSFRS_PLUGIN_MAGIC, .abi_major = MSFRS_ABI_MAJOR, .abi_minor = MSFRS_ABI_MINOR,
    .size = sizeof(struct msfrs_plugin), .kind = MSFRS_SCHED, .name = "other", .summary = "none", .paper = "none",
    .sched = &sched, .ops_size = sizeof(sched),
};
'''


@pytest.mark.sanitized
@pytest.mark.link(users=(1, 1, 1))
def test_a_scheduler_whose_answers_are_wrong(place, slow_link):
    """It picks none of the waiting requests: Squid reports that and continues without it."""
    path = place / 'other.so'
    compile_shared(path, WRONG)
    gateway = slow_link.gateway.start(NARROW, f'msfrs_arbiter {path}')
    assert all(fetch.wait().good for fetch in [slow_link.users.get(slow_link.of('gold')[0]) for _ in range(3)])
    # New requests are not unscheduled: drr takes its place at once.
    first = slow_link.users.get(slow_link.of('silver')[0], gate='open')
    gateway.wait_for(queued=0, in_flight=1)
    second = slow_link.users.get(slow_link.of('gold')[0])
    gateway.wait_for(queued=1, in_flight=1)
    assert gateway.report()['arbiter'] == 'drr'
    slow_link.origin.open_gate('open')
    assert first.wait().good and second.wait().good
    gateway.stop()
    told = harm(gateway.cache_log())
    assert told and all('ERROR: msfrs: the scheduler failed in hold: scheduler other is wrong: pick named neither an '
                        'item, of a backlog, nor a time to come' in line for line in told), told
    for name in ('cache.log', 'squid.out'):     # the errors were intended
        (gateway.directory / name).write_text('')


#: Serves one user well, and saves nonsense as its state.
FORGETFUL = '''
#include "plugin/msfrs_plugin.h"
static void enqueued(struct msfrs_flow **one, struct msfrs_item *i) { *one = i->flow; }
static struct msfrs_item *pick(struct msfrs_flow **one) { return (*one)->head; }
static void nothing() {}
static void save(void *inst, const struct msfrs_move *move, msfrs_time now)
{
    const struct msfrs_owner whose = {0};
    const double figure = 0.0 / 0.0;
    move->put(move->ctx, &whose, &figure, 1);
}
static int restore() { return 0; }
static const struct msfrs_sched_ops sched = { .enqueued = (void *)enqueued, .pick = (void *)pick,
    .picked = (void *)nothing, .removed = (void *)nothing,
    .save = save, .restore = (void *)restore, .resumed = (void *)nothing };
__attribute__((visibility("default"))) const struct msfrs_plugin msfrs_plugin = {
    .magic = MSFRS_PLUGIN_MAGIC, .abi_major = MSFRS_ABI_MAJOR, .abi_minor = MSFRS_ABI_MINOR,
    .size = sizeof(struct msfrs_plugin), .kind = MSFRS_SCHED, .name = "other", .summary = "none", .paper = "none",
    .inst_size = sizeof(void *), .sched = &sched, .ops_size = sizeof(sched), .keeps = 1,
};
'''


@pytest.mark.sanitized
@pytest.mark.link(users=(1, 1, 1))
def test_a_scheduler_that_fails_while_squid_is_reconfigured(place, slow_link):
    """Its requests continue without it; refusing the change would leave a failed scheduler in use."""
    first, second = place / 'first.so', place / 'second.so'
    for path in (first, second):
        compile_shared(path, FORGETFUL)
    gateway = slow_link.gateway.start(f'msfrs_arbiter {first}')
    fetches = [slow_link.users.get(slow_link.of('gold')[0], size=100_000) for _ in range(6)]
    gateway.wait_until(lambda: gateway.report()['holding'].startswith('yes'), 'requests that wait')
    gateway.reconfigure(f'msfrs_arbiter {second}')
    fetches.append(slow_link.users.get(slow_link.of('gold')[0]))
    assert all(fetch.wait().good for fetch in fetches), fetches
    gateway.stop()
    told = harm(gateway.cache_log())
    assert len(told) == 1 and ('ERROR: msfrs: the scheduler failed in reconfigure: scheduler other is wrong: save gave '
                               'figure 0 of the instance, which is not finite') in told[0], told
    for name in ('cache.log', 'squid.out'):     # the errors were intended
        (gateway.directory / name).write_text('')


@pytest.mark.sanitized
@pytest.mark.link(users=(1, 1, 1))
def test_a_plugin_that_is_gone_when_squid_is_told_to_reconfigure(place, slow_link):
    """By SIGHUP, without `squid -k parse` before: the running plugin stays, and the rest of the new configuration
    applies. A file that others may write to is treated as missing. Squid's effective user need not be able to read it.
    """
    gateway = slow_link.gateway
    plugins = gateway.installation.program.parents[1] / 'lib/msfrs'
    if not plugins.is_dir():
        plugins = ROOT / 'build/install/lib/msfrs'
    place.chmod(0o700)
    arbiter, admission = place / 'own-msf.so', place / 'own-red.so'
    shutil.copy(plugins / 'msf.so', arbiter)
    shutil.copy(plugins / 'red.so', admission)
    lines = [f'msfrs_arbiter {arbiter} wake=paper', f'msfrs_admission {admission} limit=99']
    gateway.start(*lines)
    gateway.reconfigure(lines[0], lines[1].replace('99', '98'))
    assert gateway.report()['admission'] == f'{admission} limit=98'
    gateway.reconfigure(*lines)
    arbiter.unlink()
    shutil.chown(admission, 'proxy')
    for weights, asked in (
            ({'gold': 7, 'silver': 2, 'bronze': 1}, lines),                                     # nothing else changed
            ({'gold': 8, 'bronze': 1}, [f'{lines[0]} users=fifo', lines[1]]),                   # requires a new engine
            ({'gold': 9, 'bronze': 1}, ['msfrs_arbiter nosuch', 'msfrs_admission none'])):
        gateway.write(*asked, weights=weights)
        listening = gateway.cache_log().count(LISTENING)
        gateway.send(signal.SIGHUP)
        gateway.wait_until(lambda seen=listening: gateway.cache_log().count(LISTENING) >= seen + 3, 'listening again')
        report = gateway.report()
        assert {row['name']: row['weight'] for row in report['classes']} == weights
        assert report['arbiter'] == f'{arbiter} wake=paper'
        assert report['admission'] == ('none' if 'msfrs_admission none' in asked else f'{admission} limit=99')
        assert slow_link.users.get(slow_link.of('gold')[0]).wait().good
    log = gateway.cache_log()
    assert log.count(f"msfrs_arbiter: no scheduler '{arbiter}': {arbiter}: No such file or directory; what runs stays"
                     ) == 2
    assert log.count(f'msfrs_admission: plugin {admission} cannot be loaded: {admission} can be changed by user proxy'
                     ) == 2
    assert f"{line_of(gateway.directory, 'msfrs_arbiter')}: msfrs_arbiter: no scheduler 'nosuch'" in log


@pytest.mark.link(users=(1, 1, 1))
def test_warnings_do_not_stop_squid(slow_link):
    """They are in cache.log, once each."""
    gateway = slow_link.gateway.start('msfrs_class lead weight=9', interface='nosuch0')
    assert gateway.cache_log().count('no request can get into class lead') == 1
    assert gateway.cache_log().count('there is no interface nosuch0 now') == 1
    assert slow_link.users.get(slow_link.of('gold')[0]).wait().good
    assert gateway.report()['link']['metered'] is False


@pytest.mark.sanitized
@pytest.mark.link(users=(1, 1, 1))
def test_a_plugin_whose_file_is_overwritten_in_place(place, slow_link):
    """Squid continues with the loaded code, and loads the new file at a reconfiguration, as its effective user."""
    plugins = next(where / 'lib/msfrs' for where in (SQUID.parents[1], ROOT / 'build/install')
                   if (where / 'lib/msfrs').is_dir())
    path = place / 'other.so'
    user = slow_link.of('gold')[0]

    def served():
        assert all(fetch.wait().good for fetch in [slow_link.users.get(user, size=30_000) for _ in range(6)])

    def put(name):
        with path.open('wb') as file:   # as cp does: the same inode, empty for a while
            if copies_in_memory(path):
                served()
            file.write((plugins / f'{name}.so').read_bytes())

    put('drr')
    gateway = slow_link.gateway.start(f'msfrs_arbiter {path} share=user', 'msfrs_quantum 4 KB')
    put('sfq')
    served()
    running = copies_in_memory(path)
    assert running
    gateway.reconfigure(f'msfrs_arbiter {path} divisor=1', 'msfrs_quantum 4 KB')    # a parameter of sfq alone
    served()
    assert gateway.report()['arbiter'] == f'{path} divisor=1'
    assert copies_in_memory(path) == running
    gateway.rest()


@BOTH
@pytest.mark.sanitized
@pytest.mark.parametrize('line, words', (
    ('msfrs_arbiter drfq', 'scheduler drfq must know the cost of an item before it is served'),
    ('msfrs_arbiter atfq', 'scheduler atfq must know the cost of an item before it is served'),
    ('msfrs_admission red mode=bytes', 'mode=bytes needs the size of an item when it arrives'),
    ('msfrs_admission red min=60 max=50', 'min=60'),
    ('msfrs_admission faba limit=0', 'limit=0 is not allowed: expected a whole number from 1 to 10000000 packets'),
    ('msfrs_admission choke draws=0', 'draws=0 is not allowed: expected a whole number from 1 to 64'),
))
def test_a_plugin_that_does_not_fit_requests(place, fabric, arguments, line, words):
    """Schedulers of packets with exact costs, AQMs that count bytes: refused with the reason."""
    said = refused(place, fabric, ON + line + '\n', *arguments)
    assert words in said and line_of(place, line.split(maxsplit=1)[0]) in said, said
