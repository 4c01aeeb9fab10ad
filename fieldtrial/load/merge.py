# SPDX-License-Identifier: GPL-2.0-or-later
"""One run out of the parts that several load generators wrote: the same files, as if one had made all requests."""
import collections
import csv
import json
import pathlib
import shutil

import numpy

#: Tables of what ended, one row each, and the column by which they are in order.
EVENTS, ENDED = ('requests.csv', 'pages.csv'), 't_end'
SAMPLES, META = 'bytes.csv', 'meta.json'
#: Of meta.json: counted by name, and counted.
COUNTS = 'requests', 'pages', 'payload_bytes', 'errors', 'tunnels', 'quic'
SUMS = 'most_in_flight', 'cpu_s', 'memory_kb'


def merge(parts, out):
    """Puts together what the directories `parts` hold, all of one run, in the directory `out`."""
    parts, out = [pathlib.Path(part) for part in parts], pathlib.Path(out)
    if len(parts) == 1:
        for name in (*EVENTS, SAMPLES, META):
            shutil.copyfile(parts[0] / name, out / name)
        return
    for name in EVENTS:
        (header, *_), rows = zip(*(_read(part / name) for part in parts))
        at = header.index(ENDED)
        write_csv(out / name, header, sorted((row for part in rows for row in part), key=lambda row: float(row[at])))
    write_csv(out / SAMPLES, *_samples([_read(part / SAMPLES) for part in parts]))
    meta = _meta([json.loads((part / META).read_text(encoding='utf-8')) for part in parts])
    (out / META).write_text(json.dumps(meta, indent=1) + '\n', encoding='utf-8')


def _read(path):
    """(header, rows)."""
    with open(path, encoding='utf-8', newline='') as file:
        header, *rows = csv.reader(file)
    return header, rows


def write_csv(path, header, rows):
    """A CSV file as the load generator makes it."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(header)
        writer.writerows(rows)


def _samples(tables):
    """Header and rows of bytes.csv. All sample at the same moments, but for milliseconds: the rows are those of the
    part that lasted longest, and what others had got by then lies between two rows of theirs, or is what they had at
    their end."""
    header, columns = ['t'], []
    times = max(([row[0] for row in rows] for _, rows in tables), key=lambda column: float(column[-1]))
    moments = list(map(float, times))
    for names, rows in tables:
        own, *values = numpy.array(rows, float).T
        header += names[1:]
        columns += [numpy.interp(moments, own, value).round().astype(int) for value in values]
    return header, [[t, *row] for t, row in zip(times, numpy.array(columns).T.tolist())]


def _meta(parts):
    """meta.json: the run is the same in all parts; what was counted adds up. Of requests in flight, the sum of each
    one's most is at least what there was at once."""
    whole = dict(parts[0])
    for name in COUNTS:
        total = collections.Counter()
        for part in parts:
            total.update(part[name])
        whole[name] = dict(total)
    whole.update((name, round(sum(part[name] for part in parts), 3)) for name in SUMS)
    whole['stopped'] = next((part['stopped'] for part in parts if part['stopped']), None)
    whole['t_end'] = max(part['t_end'] for part in parts)
    return whole
