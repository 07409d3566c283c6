//! Handles that name nothing are errors of every function that takes one, never a crash and never success.
//!
//! The C program is generated from the description: each function is called with all its handles garbage, and then with
//! one handle garbage and the others valid.

mod common;

use kw_apigen::{Api, Direction, Function, Param};
use std::fmt::Write;

/// These end the process or MPI, and are tested elsewhere.
const NOT_HERE: &[&str] = &[
    "MPI_Abort",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Session_init",
];

/// A freed communicator, a window, a pointer and small numbers that no predefined handle has.
const GARBAGE: &[&str] = &[
    "0x0100000500000063",
    "0x0a00000000000001",
    "0x7ffdeadbeef0",
    "0xfff",
    "~0ul",
];

const HEAD: &str = "\
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static char scratch[1 << 16];
static int fine;
static void check(const char *what, int code) {
    if (code == MPI_SUCCESS) { printf(\"%s\\n\", what); fine++; }
    memset(scratch, 0, sizeof scratch);
}
";

fn handle(p: &Param, api: &Api) -> Option<String> {
    let base = p
        .c_type
        .trim_start_matches("const ")
        .split([' ', '['])
        .next()?
        .to_string();
    let is_handle = api.form(&base) == Some("handle") && !base.starts_with("MPI_T_");
    (is_handle && p.direction != Direction::Out).then_some(base)
}

fn valid(ty: &str) -> &'static str {
    match ty {
        "MPI_Comm" => "MPI_COMM_WORLD",
        "MPI_Group" => "MPI_GROUP_EMPTY",
        "MPI_Datatype" => "MPI_INT",
        "MPI_Op" => "MPI_SUM",
        "MPI_Errhandler" => "MPI_ERRORS_RETURN",
        _ => "0",
    }
}

/// The call, as a block of C; handle number `only` is garbage, or all of them.
fn call(f: &Function, api: &Api, only: Option<usize>, garbage: &str) -> String {
    let mut before = String::new();
    let mut args = Vec::new();
    let mut n = 0;
    for p in f.fixed_params() {
        let Some(ty) = handle(p, api) else {
            args.push(plain(p, api));
            continue;
        };
        let value = if only.is_none_or(|o| o == n) {
            garbage
        } else {
            valid(&ty)
        };
        let _ = write!(
            before,
            "{ty} h{n}[4]; for (int i = 0; i < 4; i++) h{n}[i] = ({ty}){value}; "
        );
        let by_address = p.c_type.contains(['*', '[']);
        args.push(if by_address {
            format!("h{n}")
        } else {
            format!("h{n}[0]")
        });
        n += 1;
    }
    let what = format!("{} handle {only:?} {garbage}", f.name);
    format!(
        "{{ {before}check(\"{what}\", {}({})); }}\n",
        f.name,
        args.join(", ")
    )
}

fn plain(p: &Param, api: &Api) -> String {
    let base = p.c_type.split(' ').next().unwrap_or_default();
    match p.c_type.as_str() {
        "int" | "const int" | "MPI_Count" | "MPI_Aint" | "MPI_Offset" => "1".into(),
        _ if api.form(base) == Some("function") => "0".into(),
        t if t.contains("[3]") => "(int (*)[3])scratch".into(),
        _ => "(void *)scratch".into(),
    }
}

#[test]
fn no_function_takes_garbage_for_a_handle() {
    let api = common::api();
    let mut source = String::from(HEAD);
    let mut names = Vec::new();
    for f in api.functions.iter().filter(|f| f.code && !f.is_tool()) {
        let handles = f
            .fixed_params()
            .filter(|p| handle(p, &api).is_some())
            .count();
        if handles == 0 || NOT_HERE.contains(&f.name.as_str()) {
            continue;
        }
        let mut body = String::new();
        for garbage in GARBAGE {
            body.push_str(&call(f, &api, None, garbage));
            for only in 0..handles {
                body.push_str(&call(f, &api, Some(only), garbage));
            }
        }
        let _ = writeln!(source, "static void test_{}(void) {{\n{body}}}", f.name);
        names.push(&f.name);
    }
    source.push_str("int main(void) {\nMPI_Init(0, 0);\n");
    source.push_str("MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n");
    source.push_str("MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);\n");
    for name in &names {
        let _ = writeln!(source, "fprintf(stderr, \"{name}\\n\"); test_{name}();");
    }
    source.push_str("return fine != 0;\n}\n");
    assert!(names.len() > 400, "{} functions take handles", names.len());
    let dir = common::folder("garbage");
    let exe = common::compile(&dir, "garbage", &source);
    common::run(&mut common::program(&exe));
}
