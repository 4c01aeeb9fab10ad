# SPDX-License-Identifier: GPL-2.0-or-later
"""What `msfrsctl setup` says at its end: what there is now, where to look, and how to take it back."""
from . import text
from .start import PAGE, unit_of
from .units import rate_of


def lines_of(found, site):
    """Three lines about the gateway, and four about what to do next. found: the Answers."""
    rate = text.rate(rate_of(found.rate)) if found.rate != 'auto' else f'from {found.min} to {found.max}, found'
    past = 'msfrs-edge holds what bypasses Squid to its share' if found.edge == 'yes' else \
        'nothing holds what bypasses Squid'
    quic = 'rejected, so that browsers use TCP' if found.quic == 'reject' else 'let through'
    classes = ', '.join(f'{cls.name} {cls.weight} ({" ".join(cls.networks) or "everybody else"})'
                        for cls in found.classes)
    return [f'  link     {rate} at {found.outside}; {past}',
            f'  users    {found.users} at {found.inside}: TCP to ports 80 and 443 goes through Squid; QUIC is {quic}',
            f'  weights  {classes}', _look(site),
            '  ask      msfrsctl why USER (an address, a login); msfrsctl prove shows whether it helps on this link',
            '  undo     msfrsctl setup --undo', '  off      msfrsctl off: at once, and cuts nothing']


def _look(site):
    address, _, port = (site.page_setting('listen') or '').rpartition(':')
    if not port.isdigit() or not unit_of(site, PAGE):
        return '  look     msfrsctl top; a page for browsers: install msfrs-page'
    if address not in ('127.0.0.1', '[::1]'):
        return f'  open     http://{address}:{port}/'
    return f'  open     http://localhost:{port}/ on this machine, or after ssh -L {port}:localhost:{port} to it'
