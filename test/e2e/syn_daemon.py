# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-syn on a gateway."""
import os
import pathlib

from iptables_script import ROOT
from our_daemon import OurDaemon

BUILD = pathlib.Path(os.environ.get('MSFRS_TEST_BUILD', ROOT / 'build/obj'))


class SynDaemon(OurDaemon):
    """Its configuration is a file of msfrs-iptables, too."""

    def __init__(self, host, directory, mode='redirect', text='squid-user = nobody\n'):
        super().__init__(host)
        self.file = directory / 'iptables.conf'
        self.file.write_text(f'mode = {mode}\n{text}')
        self.file.chmod(0o644)

    def command(self):
        return [str(BUILD / 'msfrs-syn'), str(self.file)]

    def sockets(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))
