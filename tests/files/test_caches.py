"""Two hosts that share a directory through a file system of which each keeps pages of its own, as
on NFS: what a rank writes in atomic mode, or before MPI_File_sync, the ranks of the other host
see."""

import os
import shutil

import pytest

from jobs import MPIEXEC, SKIPPED, run, dump


@pytest.fixture
def on_two_hosts(tmp_path):
    """Runs a program on two ranks of each host; its first argument is the directory. bindfs is
    mounted twice on one directory: the pages of one mount do not change when data are written
    through the other."""
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed (Debian's package bindfs)")
    real, here, there = (tmp_path / name for name in ("real", "here", "there"))
    for directory in (real, here, there):
        directory.mkdir()
    apart = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "-r"]
    mount = f"bindfs {real} {here} && bindfs {real} {there}"
    unmount = f"umount {here} {there}"  # the programs bindfs end with their mounts
    if (p := run(*apart, "sh", "-c", f"{mount} && {unmount}")).returncode:
        pytest.skip(f"no FUSE file system can be mounted here: {p.stderr.strip()}")
    ssh = tmp_path / "ssh"
    ssh.write_text(f"""#!/bin/sh
host=$1
shift
[ $host = a ] && exec "$@"
exec unshare --mount sh -c 'mount --bind {there} {here} && exec "$@"' sh "$@"
""")
    ssh.chmod(0o755)

    def on(program, *arguments):
        words = [MPIEXEC, "--ssh", ssh, "--hosts", "a:2,b:2", program, here, *arguments]
        script = f'{mount} && "$@"; status=$?; {unmount}; exit $status'
        return run(*apart, "sh", "-c", script, "sh", *words, env={"KW_PATHS": "self,shm,tcp"})

    return on


def test_a_host_does_not_read_its_stale_pages(program, on_two_hosts):
    p = on_two_hosts(program("tests/files/two_caches.c", "-O1", "-Wall"))
    assert p.returncode == 0 and p.stdout == "right\n", dump(p)


def test_pages_that_one_rank_cannot_discard_are_reported_on_every_rank(program, on_two_hosts):
    """The other ranks of MPI_File_set_size and MPI_File_sync were told nothing."""
    p = on_two_hosts(program("tests/files/one_rank_fails.c", "-O1", "-Wall"), "refresh")
    if p.returncode == SKIPPED:
        pytest.skip("the kernel does not let a program decide about its system calls (seccomp)")
    assert p.returncode == 0, dump(p)
    assert len(p.stdout.splitlines()) == 3, dump(p)
