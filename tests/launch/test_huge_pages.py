"""What malloc of ranks is told about huge pages (KW_HUGE_PAGES)."""

import pathlib

import pytest

from jobs import mpiexec, sh

POLICY = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
ASKED = "glibc.malloc.hugetlb=1"


def tunables(*options, **env):
    return mpiexec("-n", 1, *options, *sh('echo "$GLIBC_TUNABLES"'), env=env).stdout.strip()


@pytest.fixture
def on_demand():
    if not POLICY.exists() or "[madvise]" not in POLICY.read_text():
        pytest.skip("huge pages are not given to programs that ask, here")


def test_ranks_ask_for_huge_pages(on_demand):
    assert tunables(KW_HUGE_PAGES="yes") == ASKED
    assert tunables("-x", "KW_HUGE_PAGES=yes") == ASKED


def test_other_tunables_stay(on_demand):
    own = "glibc.malloc.arena_max=2"
    assert tunables(KW_HUGE_PAGES="yes", GLIBC_TUNABLES=own) == f"{own}:{ASKED}"
    options = ["-x", "KW_HUGE_PAGES=yes", "-x", f"GLIBC_TUNABLES={own}"]
    assert tunables(*options) == f"{own}:{ASKED}"


def test_what_the_user_says_holds():
    assert tunables() == ""
    assert tunables("-x", "KW_HUGE_PAGES=no", KW_HUGE_PAGES="yes") == ""
    own = "glibc.malloc.hugetlb=0"
    assert tunables(KW_HUGE_PAGES="yes", GLIBC_TUNABLES=own) == own


def test_what_cannot_be_had_is_reported(on_demand, crashing):
    setting = {"KW_HUGE_PAGES": "yes"}
    assert mpiexec("-n", 2, crashing, "not", env=setting).stderr == ""
    p = mpiexec("-n", 2, "env", "-u", "GLIBC_TUNABLES", crashing, "not", env=setting)
    assert p.stderr.count("KW_HUGE_PAGES has no effect: malloc was not configured") == 1, p.stderr
