# SPDX-License-Identifier: GPL-2.0-or-later
"""The Squid under test, where its effective user can reach it."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
from dataclasses import dataclass

from fieldtrial.base.paths import ROOT

SQUID = pathlib.Path(os.environ.get('MSFRS_TEST_SQUID', ROOT / 'build/install/sbin/squid')).absolute()


@dataclass(frozen=True)
class Installation:
    program: pathlib.Path
    lines: tuple[str, ...] = ()     #: of squid.conf: where is what it reads and runs as its effective user
    plugins: str = ''               #: the directory of the plugins with a slash behind; empty: where Squid looks itself

    @property
    def certificate_generator(self):
        return self.program.parents[1] / 'libexec/security_file_certgen'


@contextlib.contextmanager
def installation():
    """What is installed; a copy for all to read if it lies below a directory that only its owner may enter, as the
    home of a developer may be."""
    prefix = SQUID.parents[1]
    if all(directory.stat().st_mode & 0o001 for directory in prefix.resolve().parents):
        yield Installation(SQUID)
        return
    # Not in /run with the other files of tests: programs there often cannot be executed.
    with tempfile.TemporaryDirectory(prefix='msfrs-squid-') as made:
        copy = pathlib.Path(made)
        plugins = next(where for where in (prefix, ROOT / 'build/install') if (where / 'lib/msfrs').is_dir())
        subprocess.run(['cp', '-r', *(prefix / part for part in ('sbin', 'libexec', 'share', 'etc')), copy], check=True)
        subprocess.run(['cp', '-r', plugins / 'lib/msfrs', copy / 'plugins'], check=True)
        subprocess.run(['chmod', '-R', 'a+rX', copy], check=True)
        yield Installation(copy / 'sbin' / SQUID.name, plugins=f'{copy}/plugins/', lines=(
            f'error_directory {copy}/share/errors/templates', f'icon_directory {copy}/share/icons',
            f'mime_table {copy}/share/mime.conf', f'err_page_stylesheet {copy}/etc/errorpage.css',
            f'unlinkd_program {copy}/libexec/unlinkd', f'logfile_daemon {copy}/libexec/log_file_daemon'))
