# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is where: users dealt over groups, each of which is a host of its own. Pure functions."""


def by_class(users, count):
    """`users` in `count` lists, classes kept apart as far as there are groups: with as many groups as classes each has
    one, with fewer neighbours share one, with more a class has several, among which its users take turns."""
    classes = _by_class(users)
    groups = [[] for _ in range(count)]
    for number, members in enumerate(classes):
        first, after = number * count // len(classes), (number + 1) * count // len(classes)
        for turn, user in enumerate(members):
            groups[first + turn % max(1, after - first)].append(user)
    return groups


def evenly(users, count):
    """`users` in `count` lists, the users of each class taking turns; so each list in use has all classes. What is more
    than the smallest class has users stays empty."""
    classes = _by_class(users)
    used = min(count, *map(len, classes))
    groups = [[] for _ in range(count)]
    for members in classes:
        for turn, user in enumerate(members):
            groups[turn % used].append(user)
    return groups


def in_turn(users, count):
    """`users` in `count` lists, one after the other: as many in each, but for one."""
    return [users[number::count] for number in range(count)]


def _by_class(users):
    classes = {}
    for user in users:
        classes.setdefault(user.cls, []).append(user)
    return list(classes.values())
