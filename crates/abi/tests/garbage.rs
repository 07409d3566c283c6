//! Handles that name nothing are errors of every function that takes one; they never cause a crash
//! or success.
//!
//! The C program is generated from the description: each function is called with all its handles
//! garbage, and then with one handle garbage and the others valid.

mod common;

use kw_apigen::{Api, Direction, Function, Param};
use std::fmt::Write;

/// Functions that end the process or MPI, and are tested elsewhere.
const NOT_HERE: &[&str] = &[
    "MPI_Abort",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Session_init",
];

/// A freed communicator, one of each kind of the tool interface, a window, a pointer and small
/// numbers that no predefined handle has.
const GARBAGE: &[&str] = &[
    "0x0100000500000063",
    "0x0c00000000000063",
    "0x0d00000500000000",
    "0x0e00000500000000",
    "0x0f00000500000000",
    "0x1000000500000000",
    "0x1100000000000000",
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
static MPI_T_enum an_enum;
static MPI_T_cvar_handle a_cvar;
static MPI_T_pvar_session a_session;
static MPI_T_pvar_handle a_pvar;
static MPI_T_event_registration a_registration;
static void check(const char *what, int code) {
    if (code == MPI_SUCCESS) { printf(\"%s\\n\", what); fine++; }
    memset(scratch, 0, sizeof scratch);
}
";

/// A handle of each kind of the tool interface.
const TOOLS: &str = "\
int level, count;
MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
MPI_T_cvar_get_index(\"KW_WRITE\", &count);
MPI_T_cvar_get_info(count, 0, 0, 0, 0, &an_enum, 0, 0, 0, 0);
MPI_T_cvar_handle_alloc(0, 0, &a_cvar, &count);
MPI_T_pvar_session_create(&a_session);
MPI_T_pvar_handle_alloc(a_session, 0, 0, &a_pvar, &count);
MPI_T_event_handle_alloc(0, 0, MPI_INFO_NULL, &a_registration);
if (!an_enum || !a_cvar || !a_session || !a_pvar || !a_registration) return 2;
";

fn handle(p: &Param, api: &Api) -> Option<String> {
    let base = p
        .c_type
        .trim_start_matches("const ")
        .split([' ', '['])
        .next()?
        .to_string();
    let is_handle = api.form(&base) == Some("handle");
    (is_handle && p.direction != Direction::Out).then_some(base)
}

fn valid(ty: &str) -> &'static str {
    match ty {
        "MPI_Comm" => "MPI_COMM_WORLD",
        "MPI_Group" => "MPI_GROUP_EMPTY",
        "MPI_Datatype" => "MPI_INT",
        "MPI_Op" => "MPI_SUM",
        "MPI_Errhandler" => "MPI_ERRORS_RETURN",
        "MPI_Info" => "MPI_INFO_NULL",
        "MPI_T_enum" => "an_enum",
        "MPI_T_cvar_handle" => "a_cvar",
        "MPI_T_pvar_session" => "a_session",
        "MPI_T_pvar_handle" => "a_pvar",
        "MPI_T_event_registration" => "a_registration",
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
        t if api.form(t) == Some("enum") => "0".into(),
        t if t.contains("[3]") => "(int (*)[3])scratch".into(),
        _ => "(void *)scratch".into(),
    }
}

#[test]
fn no_function_takes_garbage_for_a_handle() {
    let api = common::api();
    let mut source = String::from(HEAD);
    let mut names = Vec::new();
    for f in api.functions.iter().filter(|f| f.code) {
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
    source.push_str(TOOLS);
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
