//! Calls before initialisation print a sentence and end the process; they never crash (MPI 5.0,
//! 11.4.1).

mod common;

#[test]
fn a_call_before_initialisation_says_so_and_ends_the_process() {
    let dir = common::folder("outside");
    let source = "#include <mpi.h>\nint main(void) { MPI_Barrier(MPI_COMM_WORLD); return 0; }\n";
    let exe = common::compile(&dir, "early", source);
    let out = common::program(&exe).output().unwrap();
    assert_eq!(out.status.code(), Some(16), "MPI_ERR_OTHER");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        text.contains("MPI_Barrier was called before MPI was initialised"),
        "{text}"
    );
}

#[test]
fn values_and_handles_as_integers_need_no_initialisation() {
    let dir = common::folder("always");
    let source = "\
#include <mpi.h>
int main(void) {
    double t = MPI_Wtime();
    if (MPI_Aint_diff(MPI_Aint_add(40, 2), 2) != 40) return 1;
    if (MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) != MPI_COMM_WORLD) return 2;
    if (MPI_Comm_fromint(0x40000007) != MPI_COMM_NULL) return 3;
    if (MPI_Wtick() <= 0 || MPI_Wtime() < t) return 4;
    return MPI_Pcontrol(1, \"ignored\");
}
";
    common::run(&mut common::program(&common::compile(
        &dir, "values", source,
    )));
}
