# SPDX-License-Identifier: GPL-2.0-or-later
"""What msfrs-why makes of the manager's pages and of the faults that are known: the verdict on the gateway, which is the
first line of status and why and that of the page, and the explanation of one user."""
import json

from . import faults
from .errors import FAILED, CtlError
from .manager import SilentError

#: msfrs-why's names of its input pages.
PAGES = {'metrics': 'msfrs-metrics', 'report': 'msfrs', 'users': 'msfrs-users'}


def look(site, kinds=('metrics', 'report')):
    """Input sections of the cache manager's pages of these kinds, as of now. Raises CtlError."""
    return [(kind, site.system.monotonic(), site.manager.page(PAGES[kind])) for kind in kinds]


def silent(site):
    """The section that says so if Squid does not answer."""
    host, port = site.manager.address
    return [('silent', 0, f'[{host}]:{port}' if ':' in host else f'{host}:{port}')]


def explain(site, name, sections, engine=None):
    """The JSON of msfrs-why. Raises CtlError."""
    known = ''.join(f'{fault.code}\t{fault.text}\n' for fault in faults.known(site))
    given = ''.join(f'{kind} {at:.6f} {len(page.encode())}\n{page}' for kind, at, page in
                    [*sections, *([('faults', 0, known)] if known else [])])
    done = site.system.run(engine or site.why, name, input=given)
    if not done:
        raise CtlError(f'msfrs-why cannot say what that means: {done.err.strip() or done.code}; is it of the same '
                       f'version as msfrsctl and Squid?', FAILED)
    return json.loads(done.out)


def verdict(site, engine=None):
    """{light, text} of the gateway now."""
    try:
        sections = look(site)
    except SilentError:
        sections = silent(site)
    return explain(site, '--overall', sections, engine)
