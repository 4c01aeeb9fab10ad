# SPDX-License-Identifier: GPL-2.0-or-later
"""Distribution of users over groups, each of which is a separate host. Pure functions."""


def by_class(users, count):
    """`users` in `count` lists, with classes separated as far as possible: with as many groups as classes each class
    has one, with fewer neighbouring classes share one, with more a class has several, to which its users are dealt in
    turn."""
    classes = _by_class(users)
    groups = [[] for _ in range(count)]
    for number, members in enumerate(classes):
        first, after = number * count // len(classes), (number + 1) * count // len(classes)
        for turn, user in enumerate(members):
            groups[first + turn % max(1, after - first)].append(user)
    return groups


def evenly(users, count):
    """`users` in `count` lists, dealing the users of each class in turn, so that each list in use has all classes.
    Lists beyond the size of the smallest class stay empty."""
    classes = _by_class(users)
    used = min(count, *map(len, classes))
    groups = [[] for _ in range(count)]
    for members in classes:
        for turn, user in enumerate(members):
            groups[turn % used].append(user)
    return groups


def in_turn(users, count):
    """`users` dealt to `count` lists in turn: their lengths differ by at most one."""
    return [users[number::count] for number in range(count)]


def _by_class(users):
    classes = {}
    for user in users:
        classes.setdefault(user.cls, []).append(user)
    return list(classes.values())
