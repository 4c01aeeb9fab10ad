# SPDX-License-Identifier: GPL-2.0-or-later
"""Python interface of the multi-resource shop (src/satellites/sim/shop): any scheduler plugin, m resources without
buffers between them.

Times are whole numbers of 10^-4 microseconds: the papers' figures are exact in them.
"""
import ctypes
from pathlib import Path

import numpy as np

TICKS = 10**10  # a second
FOREVER = 2**63 - 1
RESOURCES = 4  # most resources of a packet

FLOW, ARRIVED, START, FINISH = range(4)  # columns of run(); then the time on each resource
FIRST = 4


class Shop:
    """A simulated box. With one resource it is a link.

    scheduler: a plugin's name, and its parameters as name=value words: "atfq packets=5"
    rate:      of the link, bit/s; passed to the scheduler too if it has such a parameter
    """

    def __init__(self, build: Path, scheduler: str, resources: int, rate: int):
        self._lib = ctypes.CDLL(str(build / ".libs" / "shop.so"))
        self._lib.shop_new.restype = ctypes.c_void_p
        self._lib.shop_run.restype = ctypes.c_uint64
        self._lib.shop_flow.restype = ctypes.c_uint32
        name, _, settings = scheduler.partition(" ")
        error = ctypes.create_string_buffer(512)
        self._handle = self._lib.shop_new(
            str(build / ".libs").encode(), name.encode(), settings.encode(), ctypes.c_uint32(resources),
            ctypes.c_int64(rate), error, ctypes.c_size_t(len(error)))
        if not self._handle:
            raise ValueError(f"{scheduler}: {error.value.decode()}")
        self._shop = ctypes.c_void_p(self._handle)

    def close(self) -> None:
        if self._shop:
            self._lib.shop_free(self._shop)
            self._shop = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def flow(self, weight: float = 1.0) -> int:
        """Adds a flow. Returns its number, from 0."""
        return self._lib.shop_flow(self._shop, ctypes.c_double(weight))

    def weight(self, flow: int, weight: float) -> None:
        self._lib.shop_weight(self._shop, ctypes.c_uint32(flow), ctypes.c_double(weight))

    def keep(self, flow: int, need: tuple[int, ...], depth: int) -> None:
        """Keeps `depth` packets of the flow queued from now on. need: bytes, then ticks on the resources before the
        link."""
        self._lib.shop_keep(self._shop, ctypes.c_uint32(flow), _need(need), ctypes.c_uint32(depth))

    def arrive(self, flow: int, when: int, need: tuple[int, ...]) -> None:
        self._lib.shop_arrive(self._shop, ctypes.c_uint32(flow), ctypes.c_int64(when), _need(need))

    def run(self, until: int = FOREVER, packets: int = 2**64 - 1) -> np.ndarray:
        """Serves until `until` or until `packets` have begun. Returns an int64 array, a row for each of them."""
        rows = ctypes.POINTER(ctypes.c_int64)()
        count = self._lib.shop_run(self._shop, ctypes.c_int64(until), ctypes.c_uint64(packets), ctypes.byref(rows))
        columns = FIRST + RESOURCES
        if not count:
            return np.empty((0, columns), np.int64)
        return np.ctypeslib.as_array(rows, (count, columns)).copy()


def _need(need: tuple[int, ...]):
    return (ctypes.c_int64 * RESOURCES)(*need)
