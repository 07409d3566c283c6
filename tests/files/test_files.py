"""Files that cannot be written as a program wants: every rank is told why in one sentence, none
waits for another, and what was written before stays. Two hosts that share a directory."""

import os
import re
import shutil
import struct

import pytest

from jobs import MPIEXEC, SKIPPED, mpiexec, run, dump

RANKS = 4
PATHS = ["self,shm", "self,tcp", "self,udp"]
HINTS = ["enable", "disable"]


@pytest.fixture
def trouble(program):
    return program("tests/files/trouble.c", "-O1", "-Wall")


def on_a_file_system(options, directory, *words, paths=None):
    """Runs ranks where a small file system lies on a directory. Skips where none can be made."""
    directory.mkdir()
    apart = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "-r"]
    mount = f"mount -t tmpfs -o {options} kittiwake {directory}"
    if (p := run(*apart, "sh", "-c", mount)).returncode:
        pytest.skip(f"no file system can be mounted here: {p.stderr.strip()}")
    script = f'{mount} && exec "$@"'
    env = {"KW_PATHS": paths} if paths else {}
    return run(*apart, "sh", "-c", script, "sh", MPIEXEC, "-n", RANKS, *words, env=env)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("hint", HINTS)
def test_a_full_device_is_reported_on_every_rank(trouble, hint, paths, tmp_path):
    place = tmp_path / "small"
    p = on_a_file_system("size=2m", place, trouble, "full", place, hint, paths=paths)
    assert p.returncode == 0, dump(p)
    said = dict(line.split(": ", 1) for line in p.stdout.splitlines())
    assert sorted(said) == [str(rank) for rank in range(RANKS)], dump(p)
    for text in said.values():
        where = rf"rank \d cannot write \d+ bytes at offset \d+ of '{place}/data'"
        assert re.search(f"{where}: No space left on device", text), text
    assert len(set(said.values())) == 1, f"the ranks were told different things: {dump(p)}"


def test_a_full_device_is_reported_to_a_rank_that_writes_alone(trouble, tmp_path):
    place = tmp_path / "small"
    p = on_a_file_system("size=2m", place, trouble, "alone", place)
    assert p.returncode == 0, dump(p)
    said = f"rank 1 cannot write .* of '{place}/data': No space left on device"
    assert len(re.findall(said, p.stdout)) == 2, dump(p)


def test_a_directory_that_cannot_be_written_is_reported_on_every_rank(trouble, tmp_path):
    place = tmp_path / "fixed"
    p = on_a_file_system("ro", place, trouble, "refused", place)
    assert p.returncode == 0, dump(p)
    said = f"rank 0 cannot create '{place}/data': Read-only file system"
    assert p.stdout.count(said) == RANKS, dump(p)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("hint", HINTS)
def test_a_call_that_fails_on_one_rank_is_reported_on_every_rank(program, hint, paths, tmp_path):
    """MPI_File_open, MPI_File_close: the other ranks waited for ever, or were told nothing."""
    test = program("tests/files/one_rank_fails.c", "-O1", "-Wall")
    p = run(MPIEXEC, "-n", RANKS, test, tmp_path, hint, env={"KW_PATHS": paths})
    if p.returncode == SKIPPED:
        pytest.skip("the kernel does not let a program decide about its system calls (seccomp)")
    assert p.returncode == 0, dump(p)
    assert len(p.stdout.splitlines()) == 15, dump(p)


def test_a_directory_that_one_host_cannot_write_is_reported_on_every_rank(trouble, tmp_path):
    """The first rank, on the other host, had made the file: it is not there afterwards."""
    ssh, place = tmp_path / "ssh", tmp_path / "place"
    place.mkdir()
    apart = "unshare --mount" if os.getuid() == 0 else "unshare --mount -r"
    bind = f"mount --bind {place} {place} && mount -o remount,bind,ro {place}"
    if (p := run(*apart.split(), "sh", "-c", bind)).returncode:
        pytest.skip(f"no directory can be mounted here: {p.stderr.strip()}")
    ssh.write_text(f"""#!/bin/sh
host=$1
shift
[ $host = a ] && exec "$@"
exec {apart} sh -c '{bind} && exec "$@"' sh "$@"
""")
    ssh.chmod(0o755)
    words = ["--ssh", ssh, "--hosts", "a:2,b:2", trouble, "one host", place]
    p = mpiexec(*words, env={"KW_PATHS": "self,shm,tcp"})
    said = f"rank 2 cannot open '{place}/data': Read-only file system"
    assert p.stdout.count(said) == RANKS, dump(p)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("hint", HINTS)
def test_a_rank_that_is_killed_ends_the_job(trouble, hint, paths, tmp_path):
    """It is named, and what all had written before stays."""
    words = ["-n", RANKS, trouble, "killed", tmp_path, hint]
    mpiexec(*words, status=None, sentence="rank 1", env={"KW_PATHS": paths})
    block, before = 1024, 64
    written = (tmp_path / "data").read_bytes()[: before * block * RANKS]
    for rank in range(RANKS):
        blocks = [(i * RANKS + rank) * block for i in range(before)]
        own = b"".join(written[at : at + block] for at in blocks)
        assert own == bytes((i * 7 + rank * 31 + 1) % 256 for i in range(before * block)), rank


@pytest.mark.parametrize("name", ["file_access", "file_open", "file_errors"])
def test_ranks_of_two_hosts_share_a_directory(name, program, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    ssh.chmod(0o755)
    test = program(f"tests/c/{name}.c", "-O1", "-DSTRICT=1")
    words = ["--ssh", ssh, "--hosts", "a:2,b:2", test]
    mpiexec(*words, env={"KW_PATHS": "self,shm,tcp", "TMPDIR": str(tmp_path)})


@pytest.mark.parametrize("name", ["file_access", "file_open", "file_errors"])
def test_a_file_system_that_is_a_program(name, program, tmp_path):
    """FUSE, by bindfs: it has no fallocate, so MPI_File_preallocate failed."""
    real, place = tmp_path / "real", tmp_path / "place"
    real.mkdir()
    place.mkdir()
    apart = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "-r"]
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed (Debian's package bindfs)")
    mount = f"bindfs {real} {place}"
    if (p := run(*apart, "sh", "-c", f"{mount} && umount {place}")).returncode:
        pytest.skip(f"no FUSE file system can be mounted here: {p.stderr.strip()}")
    test = program(f"tests/c/{name}.c", "-O1", "-DSTRICT=1")
    # the program bindfs ends with its mount
    script = f'{mount} && "$@"; status=$?; umount {place}; exit $status'
    words = [MPIEXEC, "-n", RANKS, test]
    p = run(*apart, "sh", "-c", script, "sh", *words, env={"TMPDIR": str(place)})
    assert p.returncode == 0, dump(p)


def test_ranks_write_one_netcdf_file(program, tmp_path):
    """The example: as many frames as it says, in the format that it says, the same bytes whichever
    ranks write them."""
    heat = program("examples/heat2d_netcdf.c", "-O2", "-Wall")
    files = []
    for ranks in (1, 3, 4, 6):
        path = tmp_path / f"{ranks}.nc"
        mpiexec("-n", ranks, heat, path, out=f"{path}: 5 frames of 256 x 256 temperatures\n")
        files.append(path.read_bytes())
    assert all(data == files[0] for data in files)
    (begin,) = struct.unpack(">I", files[0][120:124])
    assert files[0].startswith(b"CDF\1") and b"temperature\0" in files[0][:begin]
    assert len(files[0]) == begin + 5 * 256 * 256 * 8
    frames = struct.unpack(f">{5 * 256 * 256}d", files[0][begin:])
    first, last = frames[: 256 * 256], frames[-256 * 256 :]
    assert set(first) == {0.0, 100.0} and first[::256] == (100.0,) * 256
    row = last[128 * 256 : 129 * 256]
    assert row[0] == 100 and list(row) == sorted(row, reverse=True) and 0 < row[20] < 100
