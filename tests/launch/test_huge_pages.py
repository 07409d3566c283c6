"""What malloc of ranks is told about huge pages (KW_HUGE_PAGES)."""

import pathlib

import pytest

from jobs import mpiexec, sh

POLICY = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
ASKED = "glibc.malloc.hugetlb=1"


def told(*options, **env):
    return mpiexec("-n", 1, *options, *sh('echo "$GLIBC_TUNABLES"'), env=env).stdout.strip()


@pytest.fixture
def on_demand():
    if not POLICY.exists() or "[madvise]" not in POLICY.read_text():
        pytest.skip("huge pages are not given to who asks, here")


def test_ranks_ask_for_huge_pages(on_demand):
    assert told() == ASKED


def test_other_tunables_stay(on_demand):
    own = "glibc.malloc.arena_max=2"
    assert told(GLIBC_TUNABLES=own) == f"{own}:{ASKED}"
    assert told("-x", f"GLIBC_TUNABLES={own}") == f"{own}:{ASKED}"


def test_what_the_user_says_holds():
    assert told(KW_HUGE_PAGES="no") == ""
    assert told("-x", "KW_HUGE_PAGES=no") == ""
    own = "glibc.malloc.hugetlb=0"
    assert told(GLIBC_TUNABLES=own) == own
