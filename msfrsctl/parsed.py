# SPDX-License-Identifier: GPL-2.0-or-later
"""What `squid -k parse` reports. Squid exits with 0 although it has printed ERROR for a line that it then ignores, such
as `icap_enable on` in a Squid without ICAP: what the line was to do, it does not do."""
import re

DO = {'requires --': 'install a Squid with that feature (squid-msfrs has those of Debian\'s), or remove the line',
      'is obsolete': 'remove the line: this version of Squid ignores it'}
OTHER = 'correct or remove the line: Squid ignores it, or part of it'
#: Most errors that are reported, the first ones.
MOST = 5


def errors(done, conf):
    """[(what, do)] of the ERROR lines of `squid -k parse`. what: begins with file and line where Squid was reading a
    directive. conf: the SquidConf of the same file."""
    found, at = [], None
    lines = iter(conf.lines)
    for line in done.err.splitlines():
        said = re.sub(r'^[^|]*\| *', '', line)
        if said.startswith('Processing: '):
            words = said.split()[1:]
            # Squid skips lines in `if` blocks, never goes back.
            at = next((each for each in lines if [each.name, *each.words] == words[:1 + len(each.words)]), None)
            if at is None:
                lines = iter(conf.lines)
        elif said.startswith('ERROR: '):
            what = said.removeprefix('ERROR: ')
            do = next((do for part, do in DO.items() if part in what), OTHER)
            found.append((f'{at.where}: {at.text}: {what}' if at else what, do))
        elif not said.startswith(('WARNING: ', 'Processing Configuration File: ')):
            at = None       # Squid has read all lines
    return list(dict.fromkeys(found))[:MOST]
