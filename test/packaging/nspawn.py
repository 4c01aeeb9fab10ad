# SPDX-License-Identifier: GPL-2.0-or-later
"""A directory with a Debian as a machine: systemd as its init, started by systemd-nspawn, on a host of the trial's
fabric (fieldtrial.site.netns), whose interfaces it has."""
import contextlib
import glob
import os
import pathlib
import subprocess

import machine
from machine import wait_for

#: As a login shell has it.
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
#: Control groups: Debian 13 refuses version 1, and nspawn mounts version 2 where this machine has both. /sys and
#: /proc/sys are those of the machine's network.
SETTINGS = {'SYSTEMD_NSPAWN_UNIFIED_HIERARCHY': '1', 'SYSTEMD_NSPAWN_API_VFS_WRITABLE': 'network'}
#: Without a systemd on this machine there is no unit to be made; it remains in the control group of the caller.
OURS = () if os.path.exists('/run/systemd/system') else ('--keep-unit',)


class Machine(machine.Machine):
    """root: the directory. host: of the fabric. log: file for what the machine prints on its console."""

    def __init__(self, root, host, log):
        super().__init__(host.role)
        self.root, self._host, self._log = pathlib.Path(root), host, pathlib.Path(log)
        self.before = None      #: its files before anything of ours was installed
        self.add_later = None   #: adds later versions of our packages to the archive
        self._nspawn = self._init = None

    def boot(self):
        """Starts the machine, and waits until systemd has started everything."""
        # Its terminal is not ours: it would take what a user types.
        with open(self._log, 'ab') as log:
            self._nspawn = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'TERM', 'systemd-nspawn', '--quiet', '--boot', '--register=no', *OURS,
                 f'--machine={self._host.name}', f'--directory={self.root}', '--console=pipe', '--resolv-conf=off',
                 f'--network-namespace-path={self._host.netns_path}', '--capability=CAP_NET_ADMIN', '--timezone=off',
                 '--link-journal=no'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | SETTINGS, start_new_session=True)
        wait_for(self._found, self.said)
        wait_for(lambda: self.state() in ('running', 'degraded'), self.said)

    def _found(self):
        """Whether nspawn has started the machine's init."""
        assert self._nspawn.poll() is None, self.said()
        pid = self._nspawn.pid
        children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
        # The child becomes init once it is in the machine's root.
        self._init = next((child for child in children
                           if os.path.basename(os.readlink(f'/proc/{child}/exe')) == 'systemd'), None)
        return self._init

    def state(self):
        return self.run('systemctl', 'is-system-running', check=False).stdout.strip()

    def enter(self, words):
        return ['nsenter', f'--target={self._init}', '--mount', '--uts', '--ipc', '--net', '--pid', '--cgroup', '--',
                'env', '-i', f'PATH={PATH}', 'HOME=/root', 'TERM=dumb', 'LANG=C.UTF-8', *words]

    def said(self):
        return self._log.read_text(errors='replace')[-3000:]

    def off(self):
        """Shuts the machine down in order; by force if that takes longer than units may take."""
        if self._nspawn is None:
            return
        self._nspawn.terminate()
        try:
            self._nspawn.wait(100)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._nspawn = self._init = None
        if OURS:
            _remove_groups()


def _remove_groups():
    """Removes the empty control groups that nspawn leaves where no systemd does that."""
    for top in (path for name in ('payload', 'supervisor') for path in glob.glob(f'/sys/fs/cgroup/*/{name}')):
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
