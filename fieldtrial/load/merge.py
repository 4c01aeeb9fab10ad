# SPDX-License-Identifier: GPL-2.0-or-later
"""Merges the records of several load generators into one run: the same files, as if one had made all requests."""
import collections
import csv
import json
import pathlib
import shutil

import numpy

#: Tables with one row for each event, and the column that they are sorted by.
EVENTS, ENDED = ('requests.csv', 'pages.csv'), 't_end'
#: Of a workload that runs on one host of users alone.
ALONE = 'connections.csv'
SAMPLES, META = 'bytes.csv', 'meta.json'
#: Entries of meta.json that are counts, by name or in total.
COUNTS = 'requests', 'pages', 'payload_bytes', 'errors', 'tunnels', 'quic'
SUMS = 'most_in_flight', 'cpu_s', 'memory_kb'


def merge(parts, out):
    """Merges the records in the directories `parts`, all of one run, into the directory `out`."""
    parts, out = [pathlib.Path(part) for part in parts], pathlib.Path(out)
    if len(parts) == 1:
        for name in (*EVENTS, SAMPLES, META, *([ALONE] if (parts[0] / ALONE).exists() else [])):
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
    """Writes a CSV file in the format of the load generator."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(header)
        writer.writerows(rows)


def _samples(tables):
    """Header and rows of bytes.csv. All generators sample at the same times, up to milliseconds. The rows are those of
    the part that lasted longest; the counters of the others are interpolated between two of their rows, or are their
    final values after their end."""
    header, columns = ['t'], []
    times = max(([row[0] for row in rows] for _, rows in tables), key=lambda column: float(column[-1]))
    moments = list(map(float, times))
    for names, rows in tables:
        own, *values = numpy.array(rows, float).T
        header += names[1:]
        columns += [numpy.interp(moments, own, value).round().astype(int) for value in values]
    return header, [[t, *row] for t, row in zip(times, numpy.array(columns).T.tolist())]


def _meta(parts):
    """meta.json: the run is the same in all parts; counts add up. The sum of each part's most requests in flight is an
    upper bound of the most at once."""
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
