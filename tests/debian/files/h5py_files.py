"""h5py over MPI: datasets in rows, columns and turns, chunked and compressed, attributes, resizing;
read by other ranks than those that wrote, and at last by rank 0 without MPI."""

import h5py
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
other = (rank + 1) % size
ROWS, COLUMNS = 40, 30
right = 0


def values(rows, columns):
    return numpy.add.outer(1000.0 * numpy.array(rows), numpy.array(columns))


ALL = values(range(ROWS * size), range(COLUMNS * size))


def same(found, expected):
    global right
    assert (numpy.asarray(found) == expected).all(), f"rank {rank}: {found} is not {expected}"
    right += numpy.size(expected)


def mine(n, whose=rank):
    return slice(n * whose, n * (whose + 1))


with h5py.File("parallel.h5", "w", driver="mpio", comm=comm) as f:
    rows = f.create_dataset("rows", ALL.shape, "f8")
    rows[mine(ROWS)] = ALL[mine(ROWS)]
    columns = f.create_dataset("columns", ALL.shape, "f4")
    with columns.collective:
        columns[:, mine(COLUMNS)] = ALL[:, mine(COLUMNS)]
    turns = f.create_dataset("turns", ALL.shape, "i8", chunks=(7, 11))
    with turns.collective:
        turns[rank::size] = ALL[rank::size]
    packed = f.create_dataset("packed", ALL.shape, "f8", chunks=(ROWS, COLUMNS), compression="gzip")
    with packed.collective:
        packed[mine(ROWS)] = ALL[mine(ROWS)]
    grown = f.create_dataset("grown", (size,), "i4", maxshape=(None,), chunks=(4,))
    grown.resize((3 * size,))
    with grown.collective:
        grown[rank::size] = numpy.arange(3) * 10 + rank
    f.attrs["title"] = "parallel"
    f.create_group("a/b").attrs["size"] = size

NAMES = ["rows", "columns", "turns", "packed"]
GROWN = numpy.add.outer(numpy.arange(3) * 10, numpy.arange(size)).ravel()

with h5py.File("parallel.h5", "r", driver="mpio", comm=comm) as f:
    for name in NAMES:
        data = f[name]
        with data.collective:
            same(data[mine(ROWS, other)], ALL[mine(ROWS, other)])
            same(data[:, other::size], ALL[:, other::size])
        same(data[other::size, 3:9], ALL[other::size, 3:9])
    same(f["grown"][:], GROWN)
    assert f.attrs["title"] == "parallel" and f["a/b"].attrs["size"] == size

comm.Barrier()
if rank == 0:
    with h5py.File("parallel.h5", "r") as f:
        for name in NAMES:
            same(f[name][:], ALL)
        same(f["grown"][:], GROWN)

right = comm.reduce(right, root=0)
if rank == 0:
    print(f"result {size} ranks {right} values")
