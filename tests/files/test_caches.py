"""Two hosts that share a directory through a file system of which each keeps pages of its own, as
on NFS: what a rank writes in atomic mode, or before MPI_File_sync, the ranks of the other host
see."""

import os
import shutil

import pytest

from jobs import MPIEXEC, run, told


def test_a_host_does_not_read_its_stale_pages(program, tmp_path):
    """bindfs, mounted twice on one directory: the pages of one mount do not change when data are
    written through the other."""
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
    test = program("tests/files/two_caches.c", "-O1", "-Wall")
    words = [MPIEXEC, "--ssh", ssh, "--hosts", "a:2,b:2", test, here]
    script = f'{mount} && "$@"; status=$?; {unmount}; exit $status'
    p = run(*apart, "sh", "-c", script, "sh", *words, env={"KW_PATHS": "self,shm,tcp"})
    assert p.returncode == 0 and p.stdout == "right\n", told(p)
