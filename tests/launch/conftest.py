"""Programs that mpiexec starts, and what stands in for ssh."""

import pytest


@pytest.fixture(scope="session")
def pmi(program):
    return program("tests/launch/pmi.c", "-O1", "-Wall", compiler="cc")


@pytest.fixture(scope="session")
def crashing(program):
    return program(
        "tests/launch/crash.c", "-g", "-O0", "-Wall", "-Wno-infinite-recursion", "-pthread"
    )


@pytest.fixture
def ssh(tmp_path):
    """The environment in which a command stands in for ssh: it runs what ssh would run, here, and
    greets first, as login scripts may."""
    path = tmp_path / "ssh"
    path.write_text("""#!/bin/sh
host=$1
shift
case $host in
silent) exec sleep 1000.5 ;;
old)
    printf '\\n\\000kw-helper-1\\000\\r\\n\\012\\000\\000\\000\\000'
    exec printf '\\377\\000\\000\\000\\001\\000\\000\\0000' ;;
nonsense) exec printf '\\n\\000kw-helper-1\\000\\r\\n\\377\\377\\377\\377\\377' ;;
esac
echo "Welcome to $host"
echo "$host: a warning" >&2
exec sh -c "$*"
""")
    path.chmod(0o755)
    return {"KW_SSH": str(path)}
