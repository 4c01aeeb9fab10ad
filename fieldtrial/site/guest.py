# SPDX-License-Identifier: GPL-2.0-or-later
"""A second kernel for the queueing disciplines that the machine's own lacks: user-mode Linux as a bump in a cable.

    gateway lan0 --- in0 | switch | tap0 | guest: vec0 <=> vec1 with the qdisc | tap1 | switch | out0 --- home0 users

Only the shaper runs in the guest; all hosts stay where they are. It forwards frames from port to port by tc's mirred,
so it has no addresses and learns none. Its own receive offload has to be off: merged segments would be shaped as one
packet. It adds 0.2 ms to a round trip.
"""
import contextlib
import os
import pathlib
import re
import select
import shutil
import subprocess
import tempfile
import time

from ..base.errors import TrialError
from .host import HostError
from .netns import whole_packets

KERNEL, BUSYBOX, MODULES = 'linux.uml', '/bin/busybox', pathlib.Path('/usr/lib/uml/modules')
#: Debian packages that have these.
PACKAGES = 'gcc, user-mode-linux and busybox-static'
MEMORY = '96M'
#: Preloaded into the kernel.
REGISTERS = pathlib.Path(__file__).with_name('guest_registers.c')
#: Kernel modules, loaded in this order; those built into a kernel do not exist as files.
WANTED = ('sch_ingress', 'cls_matchall', 'act_mirred', 'cls_u32', 'sch_htb', 'sch_fq_codel', 'sch_cake')
#: Programs of the machine that run in the guest, with their libraries.
TOOLS = ('tc', 'ethtool')
#: The interface towards the users, where packets are shaped.
PORT = 'vec1'
BOOT_S, COMMAND_S = 30.0, 20.0

INIT = r'''#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b stty -echo
for m in {modules}; do $b insmod /modules/$m.ko; done
for i in vec0 vec1; do
    /bin/ethtool -K $i gro off gso off tso off
    $b ip link set $i up
    /bin/tc qdisc add dev $i clsact
done
/bin/tc filter add dev vec0 ingress matchall action mirred egress redirect dev vec1
/bin/tc filter add dev vec1 ingress matchall action mirred egress redirect dev vec0
echo =DONE= 0
while read -r line; do
    eval "$line"
    echo =DONE= $?
done
$b poweroff -f
'''
DONE = re.compile(r'^=DONE= (\d+)\r?\n', re.MULTILINE)


def why_not(hosts):
    """Why there can be no guest on such hosts, one of fabrics.NAMES; None if there can."""
    if hosts != 'namespaces':
        return 'a guest for it stands between network namespaces only'
    if not (shutil.which('gcc') and shutil.which(KERNEL) and os.access(BUSYBOX, os.X_OK) and MODULES.is_dir()):
        return f'and there is no guest for it (packages {PACKAGES})'
    return None


def refused():
    """Why a guest does not start here although its packages are there; None if it does. It is started without
    interfaces: sandboxes forbid ptrace, and before it runs a program nobody knows whether it can."""
    said, end = '', time.monotonic() + BOOT_S
    with tempfile.TemporaryDirectory() as directory, subprocess.Popen(
            _command(pathlib.Path(directory)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT) as kernel:
        while not DONE.search(said):
            more = _more(kernel.stdout.fileno(), max(end - time.monotonic(), 0))
            if more is None:
                said += f'\nit has not started within {BOOT_S:g} s'
            if not more:
                break
            said += more
        kernel.terminate()
    return None if DONE.search(said) else f'and a guest for it does not start here: {_why_ended(said)}'


def _more(console, seconds):
    """What a guest says next; None if nothing within so many seconds, '' if it has ended."""
    if not select.select([console], [], [], seconds)[0]:
        return None
    return os.read(console, 65536).decode(errors='replace')


def _why_ended(said):
    """The line of a kernel's messages that says why it ended: the last one, or the last before its panic."""
    before, panic, _ = said.partition('Kernel panic')
    lines = [line.strip() for line in before.splitlines() if line.strip()]
    return lines[-1] if lines else panic or 'it says nothing'


def _command(directory):
    """The command that starts a guest, without interfaces; its console is standard input and output."""
    registers = directory / 'registers.so'
    subprocess.run(['gcc', '-shared', '-fPIC', '-O2', '-o', registers, REGISTERS, '-ldl'], check=True)
    return ['env', f'LD_PRELOAD={registers}', KERNEL, f'mem={MEMORY}', f'initrd={_image(directory / "guest")}',
            f'uml_dir={directory}/', 'quiet', 'con=null', 'con0=fd:0,fd:1']


class Guest:
    """The guest between interfaces `inner` and `outer` of a namespace, started and stopped with a scenario. To
    `shaping` it is a host that knows tc alone."""

    role = 'guest'

    def __init__(self, scenario, host, inner, outer):
        for tap, port in (('tap0', inner), ('tap1', outer)):
            host.run('ip', 'tuntap', 'add', 'dev', tap, 'mode', 'tap')
            host.run('ip', 'link', 'add', f'br-{tap}', 'type', 'bridge', 'mcast_snooping', '0')
            whole_packets(host, tap)
            for member in (tap, port):
                host.run('ip', 'link', 'set', member, 'master', f'br-{tap}')
            for member in (tap, f'br-{tap}'):
                host.run('ip', 'link', 'set', member, 'up')
        command = _command(scenario.directory)
        mine, its = os.pipe(), os.pipe()
        self._write, self._read = mine[1], its[0]
        self._text = ''
        scenario.when_left(self._close)
        try:
            self._daemon = scenario.start(
                host, [*command, 'vec0:transport=tap,ifname=tap0,depth=64', 'vec1:transport=tap,ifname=tap1,depth=64'],
                'guest.log', command='the guest', stdin=mine[0], stdout=its[1])
        finally:
            os.close(mine[0])
            os.close(its[1])
        self._answer('its start', BOOT_S)

    def batch(self, lines, *tool):
        """As host.Host.batch(); one process for each line. Raises HostError."""
        for line in lines:
            self.run(*tool, *line.split())

    def run(self, *argv):
        """Runs tc in the guest; its output as text. Raises HostError."""
        command = ' '.join(argv)
        os.write(self._write, f'/bin/{command} 2>&1\n'.encode())
        code, said = self._answer(command, COMMAND_S)
        if code:
            raise HostError(f'exit code {code} in the guest from: {command}\n  {said.strip()}')
        return said

    def check(self):
        """Raises TrialError if it has ended."""
        self._daemon.check()

    def _answer(self, what, patience):
        end = time.monotonic() + patience
        while not (found := DONE.search(self._text)):
            self._daemon.check()
            if time.monotonic() > end:
                raise TrialError(f'the guest: no end of {what} within {patience:g} s; {self._daemon.last_words()}')
            self._text += _more(self._read, 0.1) or ''
        said, self._text = self._text[:found.start()], self._text[found.end():]
        return int(found[1]), said

    def _close(self):
        for end in (self._write, self._read):
            with contextlib.suppress(OSError):
                os.close(end)


def _image(directory):
    """The guest's file system, packed: busybox, the kernel's modules, TOOLS."""
    modules = _modules()
    for name in ('bin', 'proc', 'dev', 'modules'):
        (directory / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(BUSYBOX, directory / 'bin/busybox')
    for tool in TOOLS:
        program = pathlib.Path(shutil.which(tool)).resolve()
        shutil.copy(program, directory / 'bin' / tool)
        linked = subprocess.run(['ldd', program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r'(/\S+) \(0x', linked):
            into = directory / library.lstrip('/')
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, into)
    for path in modules:
        shutil.copy(path, directory / 'modules')
    init = directory / 'init'
    init.write_text(INIT.replace('{modules}', ' '.join(path.stem for path in modules)))
    init.chmod(0o755)
    files = ''.join(f'{path.relative_to(directory)}\n' for path in sorted(directory.rglob('*')))
    image = directory.with_suffix('.cpio')
    with open(image, 'wb') as out:
        subprocess.run([BUSYBOX, 'cpio', '-o', '-H', 'newc'], cwd=directory, input=files.encode(), stdout=out,
                       stderr=subprocess.DEVNULL, check=True)
    shutil.rmtree(directory)
    return image


def _modules():
    """The files of WANTED that the kernel has as modules. Raises TrialError."""
    kernels = sorted(MODULES.iterdir(), key=lambda path: [int(word) for word in re.findall(r'\d+', path.name)])
    if not kernels:
        raise TrialError(f'{MODULES}: no kernel there (package user-mode-linux)')
    found = (next(kernels[-1].rglob(f'{name}.ko'), None) for name in WANTED)
    return [path for path in found if path]
