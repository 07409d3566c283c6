//! A tool may replace any MPI_X and call PMPI_X (MPI 5.0, 15.2), preloaded or linked before the
//! library.

mod common;

use std::process::Command;

const TOOL: &str = "\
#include <mpi.h>
#include <stdio.h>
int MPI_Get_version(int *version, int *subversion) {
    puts(\"tool\");
    return PMPI_Get_version(version, subversion);
}
";

const PROGRAM: &str = "\
#include <mpi.h>
#include <stdio.h>
int main(void) {
    int v = 0, s = 9;
    int code = MPI_Get_version(&v, &s);
    printf(\"%d %d %d\\n\", code, v, s);
    return 0;
}
";

#[test]
fn a_preloaded_tool_is_called_and_reaches_the_library() {
    let dir = common::folder("interpose");
    std::fs::write(dir.join("tool.c"), TOOL).unwrap();
    let tool = dir.join("libtool.so");
    common::run(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&tool)
            .arg(dir.join("tool.c"))
            .arg("-I")
            .arg(&dir),
    );
    let exe = common::compile(&dir, "program", PROGRAM);
    assert_eq!(common::output(&mut common::program(&exe)), "0 5 0\n");
    let with_tool = common::output(common::program(&exe).env("LD_PRELOAD", &tool));
    assert_eq!(with_tool, "tool\n0 5 0\n");
}
