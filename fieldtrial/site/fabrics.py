# SPDX-License-Identifier: GPL-2.0-or-later
"""The fabrics, from which the hosts of a scenario are made, by name."""
NAMES = ('namespaces', 'containers')


def new(name):
    """A fabric that makes such hosts; usable with `with`."""
    if name == 'containers':
        from .containers import ContainerFabric as Fabric
    else:
        from .netns import NetnsFabric as Fabric
    return Fabric()
