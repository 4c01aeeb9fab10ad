# SPDX-License-Identifier: GPL-2.0-or-later
"""An administrator at a gateway, with a squid.conf of its own and msfrsctl."""
from . import squidconf
from ..base.paths import PROGRAMS


class Administrator:
    """All files are in the directory of a world's Squid. program: Squid; lines: more of squid.conf."""

    def __init__(self, world, program=PROGRAMS / 'squid', lines=()):
        self._world, self.directory = world, world.squid_directory()
        self.conf, self.squid = self.directory / 'squid.conf', self.directory / 'squid'
        self.conf.write_text(squidconf.files(self.directory) + '\n'.join((
            *lines, 'visible_hostname gateway.test', 'cache deny all', f'dns_nameservers {world.nameserver}')) + '\n')
        # Squids of one service name would share their memory.
        self.squid.write_text(f'#!/bin/sh\nexec {program} -n {world.service} "$@"\n')
        self.squid.chmod(0o755)

    def argv(self, command, *words):
        """The command line of the installed msfrsctl on the gateway."""
        return self._world.gateway.enter(
            [str(PROGRAMS / 'msfrsctl'), command, *words, '--squid-conf', str(self.conf), '--squid', str(self.squid),
             '--etc', str(self.directory / 'etc'), '--state', str(self.directory / 'state')])
