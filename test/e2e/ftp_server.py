# SPDX-License-Identifier: GPL-2.0-or-later
"""An FTP server at the servers' end of a slow link."""
import contextlib
import sys

from background import content
from fieldtrial.site.processes import Daemon, listens

SERVER = '''
import sys
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
FTPHandler.authorizer = DummyAuthorizer()
FTPHandler.authorizer.add_anonymous(sys.argv[1])
FTPServer(('0.0.0.0', 21), FTPHandler).serve_forever()
'''


@contextlib.contextmanager
def ftp_server(world):
    """Serves one file `big`, recognisable, of 200 kB."""
    directory = world.directory / 'ftp'
    directory.mkdir(mode=0o755)
    (directory / 'big').write_bytes(content('big', 0, 200_000))
    with Daemon(world.farm, [sys.executable, '-c', SERVER, str(directory)], directory.parent / 'ftpd.log',
                command='ftpd') as daemon:
        daemon.wait_until(lambda: listens(world.farm, 21), 'listening on port 21')
        yield
