# SPDX-License-Identifier: GPL-2.0-or-later
"""The Squid under test, in a place where its effective user can access it."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
from dataclasses import dataclass

from fieldtrial.base.paths import ROOT
from fieldtrial.site.world import certificate_helper_of

SQUID = pathlib.Path(os.environ.get('MSFRS_TEST_SQUID', ROOT / 'build/install/sbin/squid')).absolute()


@dataclass(frozen=True)
class Installation:
    program: pathlib.Path
    lines: tuple[str, ...] = ()     #: of squid.conf: paths of its files, and its effective user
    plugins: str = ''               #: plugin directory with a trailing slash; empty: Squid's default

    @property
    def certificate_generator(self):
        return certificate_helper_of(self.program)


@contextlib.contextmanager
def installation():
    """The installed Squid; a readable copy if it lies below a directory that only its owner may enter, such as a
    developer's home."""
    prefix = SQUID.parents[1]
    if all(directory.stat().st_mode & 0o001 for directory in prefix.resolve().parents):
        yield Installation(SQUID)
        return
    # Not in /run like the tests' other files, as /run is often mounted noexec.
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
