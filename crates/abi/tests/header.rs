//! `mpi.h` compiles without a warning as C99 and as C++, and has the ABI's values.

mod common;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "\
#include <mpi.h>
static int hook(MPI_Comm c, int k, void *e, void *v, void *out, int *flag) {
    (void)c; (void)k; (void)e; (void)v; (void)out; *flag = 0; return MPI_SUCCESS;
}
int main(int argc, char **argv) {
    int key, n = MPI_Comm_c2f(MPI_COMM_WORLD);
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(hook, MPI_COMM_NULL_DELETE_FN, &key, (void *)0);
    MPI_Send(MPI_BOTTOM, 0, MPI_INT, MPI_PROC_NULL, n, MPI_Comm_f2c(n));
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}
";

fn accepts(compiler: &str, args: &[&str]) {
    let dir = common::folder(&format!("header-{compiler}"));
    let file = dir.join(if compiler == "c++" { "t.cc" } else { "t.c" });
    std::fs::write(&file, PROGRAM).unwrap();
    common::run(
        Command::new(compiler)
            .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-c", "-o"])
            .arg(dir.join("t.o"))
            .args(args)
            .arg("-I")
            .arg(&dir)
            .arg(&file),
    );
}

#[test]
fn c99_accepts_the_header() {
    accepts("cc", &["-std=c99"]);
}

#[test]
fn cplusplus_accepts_the_header() {
    accepts("c++", &["-std=c++17"]);
}

/// A program that prints every constant of the description, as `mpi.h` in `include` defines it.
fn values(test: &str, include: Option<&Path>) -> String {
    let dir = common::folder(test);
    let mut source = String::from(
        "#include <stdio.h>\n#include <mpi.h>\n#define SHOW(x) printf(#x \" %ld\\n\", (long)(x))\nint main(void) {\n",
    );
    for c in &common::api().constants {
        let _ = writeln!(source, "SHOW({});", c.name);
    }
    source.push_str("printf(\"%zu %zu %zu %zu\\n\", sizeof(MPI_Status), sizeof(MPI_Aint), sizeof(MPI_Count), sizeof(MPI_Offset));\nreturn 0; }\n");
    let file = dir.join("values.c");
    std::fs::write(&file, source).unwrap();
    let exe = dir.join("values");
    let include = include.unwrap_or(&dir);
    common::run(
        Command::new("cc")
            .arg("-o")
            .arg(&exe)
            .arg("-DMPI_ABI")
            .arg("-I")
            .arg(include)
            .arg(&file),
    );
    common::output(&mut Command::new(exe))
}

/// `tests/abi` runs it.
#[test]
#[ignore = "wants another library with the same ABI: PEER_MPI_ABI_INCLUDE"]
fn the_values_are_those_of_another_library_with_the_same_abi() {
    let other = std::env::var_os("PEER_MPI_ABI_INCLUDE").expect(
        "set PEER_MPI_ABI_INCLUDE to the folder of another library's mpi.h of the standard ABI",
    );
    let (ours, theirs) = (
        values("values-ours", None),
        values("values-theirs", Some(Path::new(&other))),
    );
    for (a, b) in ours.lines().zip(theirs.lines()) {
        assert_eq!(a, b);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}
