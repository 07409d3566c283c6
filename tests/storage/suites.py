"""HDF5's, PnetCDF's and netCDF's own parallel tests, and IOR and mdtest, with our compilers, over
shared memory, TCP and UDP, and on two hosts of tests/hosts/lab: `make storage` (an hour on two
cores, so no part of `make check`).

The sources are Debian's source packages hdf5, pnetcdf and netcdf, or the directories that HDF5,
PNETCDF and NETCDF name (nothing is written there). IOR's is the directory that IOR names: Debian
has no package of it. Files on NFS are tried where FUSE_NFS names the program fuse-nfs.
"""

import os
import shutil
import subprocess

import pytest

from jobs import DIST, LAB, MPIEXEC, ROOT, SKIPPED, run, dump

WORK = ROOT / "build" / "storage"
HOSTS = "hosts"  # two, which share a directory
PATHS = ["self,shm", "self,tcp", "self,udp", HOSTS]
RANKS = 4
# program: its ranks. t_cache_image takes more than five minutes on two cores, and is left out.
HDF5 = {
    "t_mpi": 4,
    "t_bigio": 3,
    "testphdf5": 4,
    "t_cache": 4,
    "t_pread": 4,
    "t_pshutdown": 4,
    "t_prestart": 4,
    "t_init_term": 4,
    "t_shapesame": 4,
    "t_filters_parallel": 4,
    "t_pflush1": 4,
}
PNETCDF = {
    "testcases": (
        "test_vard_multiple vectors flexible redef1 inq_num_vars varn_int flexible_varm "
        "test_fillvalue ncmpi_vars_null_stride flexible2 test_varm scalar tst_vars_fill "
        "mix_collectives erange_fill test_erange null_args alignment_test noclobber buftype_free "
        "iput_all_kinds record add_var check_striping modes tst_free_comm varn_contig "
        "tst_def_var_fill one_record inq_recsize test_vard check_type error_precedence "
        "tst_dimsizes tst_max_var_dims test_vard_rec nonblocking last_large_var ivarn "
        "collective_error put_all_kinds tst_info"
    ).split(),
    "nonblocking": (
        "test_bput interleaved i_varn_int64 flexible_bput wait_after_indep req_all i_varn_indef "
        "large_num_reqs bput_varn column_wise"
    ).split(),
    "nc_test": "t_nc tst_atts3 tst_atts tst_nofill tst_norm tst_names tst_small tst_misc".split(),
    "header": ["header_consistency"],
    "fandc": ["pnctest"],
    "C": ["pres_temp_4D_wr"],
    "cdf_format": ["cdf_type", "dim_cdf12"],
}
# program: its ranks, as in netCDF's nc_test4/run_par_test.sh
NETCDF = {
    "tst_mode": [1],
    "tst_mpi_parallel": [4],
    "tst_parallel": [4],
    "tst_parallel3": [16],
    "tst_parallel4": [1, 2, 4, 8],
    "tst_parallel5": [4],
    "tst_parallel6": [4],
    "tst_nc4perf": [4],
    "tst_simplerw_coll_r": [1, 2, 4],
    "tst_parallel_zlib": [4],
    "tst_parallel_compress": [1, 4],
    "tst_quantize_par": [4],
}
# These are written for one rank, says PnetCDF.
ALONE = ["nc_test"]
IOR = {
    "contiguous": "-C -b 4m -t 1m",
    "collective": "-C -c -b 4m -t 1m",
    "interleaved": "-C -c -b 4k -t 4k -s 256",
    "views": "-C -c --mpiio.useFileView -b 4k -t 4k -s 256",
    "strided": "-C -c --mpiio.useStridedDatatype -b 4k -t 4k -s 64",
    "unordered": "-z --random-offset-seed 11 -b 4m -t 64k",
}


def source_of(package, built):
    """A copy of a package's source, without what was built there; and whether `built` is there."""
    place = WORK / package
    if (place / built).exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    if given := os.environ.get(package.upper()):
        shutil.copytree(given, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return place
    if package == "ior":
        pytest.skip("Debian has no package of IOR: name a directory, make storage IOR=DIR")
    said = run("apt-get", "source", "--download-only", package, cwd=WORK)
    archives = sorted(WORK.glob(f"{package}_*.orig.tar.*"))
    if not archives:
        pytest.skip(
            f"{package}'s source cannot be had: 'apt-get source {package}' says "
            f"'{said.stderr.strip().splitlines()[-1]}'; add Debian's sources (deb-src), or name a "
            f"directory: make storage {package.upper()}=DIR"
        )
    place.mkdir()
    unpack = ["tar", "-xf", archives[-1], "--strip-components=1", "-C", place]
    subprocess.run(unpack, check=True)
    return place


def step(place, *words):
    """One step of a build, in `place`; what it says is in the log beside it."""
    log = place.with_suffix(".log")
    env = {**os.environ, "PATH": f"{DIST}/bin:{os.environ['PATH']}"}
    with open(log, "a") as out:
        status = subprocess.run(
            words, cwd=place, env=env, stdout=out, stderr=subprocess.STDOUT
        ).returncode
    assert status == 0, "".join(open(log, errors="replace").readlines()[-20:])


def job(ranks, *words, paths, cwd):
    if paths != HOSTS:
        return run(MPIEXEC, "-n", ranks, *words, env={"KW_PATHS": paths}, cwd=cwd, timeout=570)
    start = [LAB, "--hosts", 2, "--", ROOT / "tests/hosts/mpiexec", "-n", ranks]
    p = run(*start, *words, env={"MPIEXEC": MPIEXEC}, cwd=cwd, timeout=570)
    if p.returncode == SKIPPED and p.stderr.startswith("lab: "):
        pytest.skip(p.stderr.strip())
    return p


@pytest.fixture(scope="module")
def hdf5():
    """Where HDF5's parallel tests are, built with dist/bin/mpicc."""
    place = source_of("hdf5", "testpar/t_filters_parallel")
    if not (place / "testpar/t_filters_parallel").exists():
        options = (
            f"--enable-parallel --disable-shared --enable-build-mode=production --prefix={place}"
        )
        step(place, "sh", "-c", f"CC=mpicc ./configure --quiet {options}/installed")
        step(place, "make", "-s", "-C", "src", "all", "install")
        step(place, "make", "-s", "-C", "hl/src", "all", "install")
        step(place, "make", "-s", "-C", "test", "libh5test.la")
        step(place, "make", "-s", "-C", "testpar", *HDF5, "t_pflush2")
    return place / "testpar"


@pytest.fixture(scope="module")
def pnetcdf():
    """Where PnetCDF's tests are."""
    place = source_of("pnetcdf", "test/testcases/put_all_kinds")
    if not (place / "test/testcases/put_all_kinds").exists():
        if not (place / "configure").exists():
            step(place, "autoreconf", "-i")
        options = f"--with-mpi={DIST} --disable-fortran --disable-cxx --disable-shared"
        step(place, "sh", "-c", f"./configure --quiet MPICC=mpicc {options}")
        step(place, "make", "-s")
        step(place, "make", "-s", "tests")
    return place


@pytest.fixture(scope="module")
def netcdf(hdf5):
    """Where netCDF's parallel tests are, on that HDF5."""
    place = source_of("netcdf", "nc_test4/tst_quantize_par")
    if not (place / "nc_test4/tst_quantize_par").exists():
        if not (place / "configure").exists():
            step(place, "autoreconf", "-i")
        without = "shared dap byterange nczarr libxml2 plugins".split()
        options = " ".join(["--enable-parallel-tests", *(f"--disable-{part}" for part in without)])
        there = hdf5.parent / "installed"
        env = f"CC=mpicc CPPFLAGS=-I{there}/include LDFLAGS=-L{there}/lib LIBS='-ldl -lm -lz'"
        step(place, "sh", "-c", f"{env} ./configure --quiet {options}")
        parts = "include libdispatch libsrc libsrc4 libhdf5 liblib"
        step(place, "make", "-s", f"SUBDIRS={parts}")
        step(place, "make", "-s", "-C", "nc_test4", *NETCDF)
    return place / "nc_test4"


@pytest.fixture(scope="module")
def ior():
    """Where IOR and mdtest are."""
    place = source_of("ior", "src/ior")
    if not (place / "src/ior").exists():
        if not (place / "configure").exists():
            step(place, "./bootstrap")
        step(place, "sh", "-c", "./configure --quiet --with-mpiio MPICC=mpicc CC=mpicc")
        step(place, "make", "-s")
    return place / "src"


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("program", HDF5)
def test_hdf5(program, paths, hdf5, tmp_path):
    for name in ("testphdf5", "t_pread"):
        (tmp_path / name).symlink_to(hdf5 / name)
    ranks = HDF5[program]
    p = job(ranks, hdf5 / program, paths=paths, cwd=tmp_path)
    if program == "t_pflush1":
        # It ends without closing its file, on purpose; the second program looks what is there.
        p = job(ranks, hdf5 / "t_pflush2", paths=paths, cwd=tmp_path)
    if program == "t_pshutdown":
        assert p.returncode == 0, dump(p)
        p = job(ranks, hdf5 / "t_prestart", paths=paths, cwd=tmp_path)
    if program == "t_prestart":
        pytest.skip("it reads what t_pshutdown has left, and is run with it")
    assert p.returncode == 0 and "*FAILED*" not in p.stdout + p.stderr, dump(p)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("room", PNETCDF)
def test_pnetcdf(room, paths, pnetcdf, tmp_path):
    ranks = 1 if room in ALONE else RANKS
    for program in PNETCDF[room]:
        file = tmp_path / f"{program}.nc"
        p = job(ranks, f"./{program}", file, paths=paths, cwd=pnetcdf / "test" / room)
        assert p.returncode == 0, dump(p)
        assert "fail" not in p.stdout.lower().replace("0 fail", ""), dump(p)
        if file.exists() and program != "check_striping":
            checked = run(pnetcdf / "src/utils/ncvalidator/ncvalidator", "-q", file)
            assert checked.returncode == 0, dump(checked)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("program", NETCDF)
def test_netcdf(program, paths, netcdf, tmp_path):
    for ranks in NETCDF[program]:
        p = job(ranks, netcdf / program, paths=paths, cwd=tmp_path)
        assert p.returncode == 0 and "FAIL" not in p.stdout + p.stderr, dump(p)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("how", IOR)
def test_ior(how, paths, ior, tmp_path):
    """IOR reads back what was written, with -C by other ranks, and checks each byte (-W -R)."""
    words = ["-a", "MPIIO", "-w", "-r", "-W", "-R", "-G", "7", *IOR[how].split()]
    p = job(RANKS, ior / "ior", *words, "-o", tmp_path / "data", paths=paths, cwd=tmp_path)
    assert p.returncode == 0 and "Summary of all tests" in p.stdout, dump(p)
    assert "Incorrect data" not in p.stdout + p.stderr, dump(p)


@pytest.mark.parametrize("paths", PATHS)
def test_mdtest(paths, ior, tmp_path):
    """mdtest makes files by system calls; its ranks agree by MPI."""
    words = ["-F", "-n", "20", "-w", "1024", "-e", "1024"]
    p = job(RANKS, ior / "mdtest", *words, "-d", tmp_path / "tree", paths=paths, cwd=tmp_path)
    assert p.returncode == 0 and "File creation" in p.stdout, dump(p)


def on_nfs(*words):
    """A command where two clients have mounted a directory of an NFS server; skips where none can
    be."""
    client = os.environ.get("FUSE_NFS") or "fuse-nfs"
    p = run(ROOT / "tests/storage/on_nfs", client, *words)
    if p.returncode == SKIPPED and p.stderr.startswith("on_nfs: "):
        pytest.skip(p.stderr.strip())
    return p


@pytest.mark.parametrize("name", ["file_access", "file_open", "file_errors", "file_background"])
def test_nfs(name, program):
    """The C tests of files, in a directory of a server."""
    test = program(f"tests/c/{name}.c", "-O1", "-DSTRICT=1")
    p = on_nfs("sh", "-c", 'TMPDIR=$HERE "$@"', "sh", MPIEXEC, "-n", RANKS, test)
    assert p.returncode == 0, dump(p)


def test_nfs_on_two_hosts(program, tmp_path):
    """Each host has a client, which keeps pages of its own."""
    ssh = tmp_path / "ssh"
    ssh.write_text("""#!/bin/sh
host=$1
shift
[ $host = a ] && exec "$@"
exec unshare --mount sh -c 'mount --bind $THERE $HERE && exec "$@"' sh "$@"
""")
    ssh.chmod(0o755)
    test = program("tests/files/two_caches.c", "-O1", "-Wall")
    words = [MPIEXEC, "--ssh", ssh, "--hosts", "a:2,b:2", test]
    p = on_nfs("sh", "-c", 'KW_PATHS=self,shm,tcp "$@" $HERE', "sh", *words)
    assert p.returncode == 0 and p.stdout == "right\n", dump(p)
