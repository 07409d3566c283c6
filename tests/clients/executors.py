"""Executors of mpi4py.futures, for tests: executors.py pool | comm | module."""

import sys

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor, MPIPoolExecutor


def square(x):
    return x * x


def fails(x):
    raise KeyError(x)


def work(pool):
    print(list(pool.map(square, range(20))), flush=True)
    print(repr(pool.submit(fails, 7).exception()), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "comm":
        with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:
            if pool is not None:
                work(pool)
    else:
        # One after the other: the first one's workers have left.
        for workers in [2, 1] if sys.argv[1] == "pool" else [None]:
            with MPIPoolExecutor(max_workers=workers) as pool:
                work(pool)
