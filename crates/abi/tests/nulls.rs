//! A null pointer is an error of every function that must have a place there; it never causes a
//! crash.
//!
//! The C program is generated from the description: each built function is called with one pointer
//! null and the other arguments valid, for each of its pointers. Every function has a process of
//! its own, so that one that crashes or hangs does not hide others. Message buffers are left out:
//! null is MPI_BOTTOM.

mod common;

use kw_apigen::{Api, Built, Function, Null, Param, api_dir};
use std::fmt::Write;
use std::path::Path;

/// Functions that start and end MPI.
const NOT_HERE: &[&str] = &[
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Abort",
    // These functions leave processes or a name in the user's directory behind.
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    "MPI_Publish_name",
];

const HEAD: &str = "\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int ints[1 << 12];
static MPI_Aint longs[1 << 12];
static char scratch[1 << 16];
static MPI_Datatype types[16];
static MPI_Request requests[16];
static MPI_Info infos[16];
static MPI_Comm cart, graph, dist;
static int bad;
static void check(const char *what, int code, int must_fail) {
    if (must_fail && code == MPI_SUCCESS) { printf(\"%s: success\\n\", what); fflush(stdout); bad = 1; }
}
static void begin(const char *what) { fprintf(stderr, \"%s\\n\", what); alarm(30); }
static void prepare(void) {
    int n;
    MPI_Init(0, 0);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &n);
    for (int i = 0; i < 1 << 12; i++) ints[i] = longs[i] = 1;
    for (int i = 0; i < 16; i++) {
        types[i] = MPI_INT;
        infos[i] = MPI_INFO_NULL;
        MPI_Recv_init(scratch, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &requests[i]);
        MPI_Start(&requests[i]);
    }
    int zero = 0, one = 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &one, 0, &cart);
    MPI_Graph_create(MPI_COMM_WORLD, 1, &one, &zero, 0, &graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0, &dist);
    if (cart == MPI_COMM_NULL || graph == MPI_COMM_NULL || dist == MPI_COMM_NULL) exit(2);
}
";

fn comm(f: &Function) -> &'static str {
    match f.name.as_str() {
        n if n.contains("Dist_graph_create") => "MPI_COMM_WORLD",
        n if n.contains("Cart_create") || n.contains("Graph_create") => "MPI_COMM_WORLD",
        n if n.contains("Dist_graph") => "dist",
        n if n.contains("Graph") => "graph",
        n if n.contains("eighbor") || n.contains("Cart") => "cart",
        _ => "MPI_COMM_WORLD",
    }
}

/// A valid argument, as far as the kind determines one.
fn valid(f: &Function, p: &Param, api: &Api) -> String {
    let base = p.c_type.trim_start_matches("const ");
    let base = base.split([' ', '[']).next().unwrap_or_default();
    let is_pointer = p.c_type.contains(['*', '[']);
    match (base, is_pointer) {
        _ if p.c_type.contains("[3]") => "(int (*)[3])ints".into(),
        _ if p.c_type.matches('*').count() > 1 => "(void *)scratch".into(),
        ("char", true) if p.c_type.starts_with("const") => "\"name\"".into(),
        ("int", true) if !p.c_type.contains("*") => "ints".into(),
        ("MPI_Aint" | "MPI_Count", true) if p.c_type.contains('[') => "(void *)longs".into(),
        ("MPI_Datatype", true) => "types".into(),
        ("MPI_Request", true) => "requests".into(),
        ("MPI_Info", true) => "infos".into(),
        (_, true) => "(void *)scratch".into(),
        ("int", _) if p.kind.starts_with("RANK") => {
            let is_root = p.name.contains("root") || p.name.contains("leader");
            if is_root { "0" } else { "MPI_PROC_NULL" }.into()
        }
        ("MPI_Comm", _) => comm(f).into(),
        ("MPI_Group", _) => "MPI_GROUP_EMPTY".into(),
        ("MPI_Datatype", _) => "MPI_INT".into(),
        ("MPI_Op", _) => "MPI_SUM".into(),
        ("MPI_Request", _) => "requests[0]".into(),
        ("MPI_Errhandler", _) => "MPI_ERRORS_RETURN".into(),
        ("MPI_Info", _) => "MPI_INFO_NULL".into(),
        _ if api.form(base) == Some("function") => "0".into(),
        _ if api.form(base) == Some("handle") => format!("({base})0"),
        _ => "1".into(),
    }
}

/// The call in which the pointer at `null` is null.
fn call(f: &Function, null: usize, api: &Api) -> String {
    let one = |(i, p): (usize, &Param)| match i == null {
        true => "0".to_string(),
        false => valid(f, p, api),
    };
    let args: Vec<_> = f.fixed_params().enumerate().map(one).collect();
    let param = f.fixed_params().nth(null).expect("a parameter");
    let must_fail = matches!(param.null, Null::No | Null::Empty);
    format!(
        "begin(\"{0} {1}\"); check(\"{0} {1}\", {0}({2}), {must_fail});\n",
        f.name,
        param.name,
        args.join(", "),
        must_fail = must_fail as u8,
    )
}

fn body(f: &Function, api: &Api) -> String {
    let pointers = f.fixed_params().enumerate();
    let pointers = pointers.filter(|(_, p)| p.null != Null::NoPointer);
    let pointers = pointers.filter(|(_, p)| p.kind != "BUFFER" && !p.kind.contains("FUNCTION"));
    pointers.map(|(i, _)| call(f, i, api)).collect()
}

#[test]
fn a_null_pointer_is_an_error_and_never_a_crash() {
    let dir = api_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    let api = Api::read(&dir).unwrap();
    let built = Built::read(&dir, &api).unwrap();
    let mut source = String::from(HEAD);
    let mut names = Vec::new();
    for f in api.functions.iter().filter(|f| f.code) {
        let body = body(f, &api);
        let here = built.has(f) && !NOT_HERE.contains(&f.name.as_str());
        if body.is_empty() || !here {
            continue;
        }
        let _ = writeln!(source, "static void test_{}(void) {{\n{body}}}", f.name);
        names.push(&f.name);
    }
    source.push_str("int main(int c, char **v) {\nprepare();\nswitch (atoi(v[1])) {\n");
    for (i, name) in names.iter().enumerate() {
        let _ = writeln!(source, "case {i}: test_{name}(); break;");
    }
    source.push_str("}\nfflush(stdout);\n_exit(bad);\n}\n");
    assert!(names.len() > 300, "{} functions take pointers", names.len());
    let dir = common::folder("nulls");
    let exe = common::compile(&dir, "nulls", &source);
    let mut wrong = String::new();
    for i in 0..names.len() {
        let out = common::program(&exe).arg(i.to_string()).output().unwrap();
        if !out.status.success() {
            let stderr = String::from_utf8_lossy(&out.stderr);
            let last = stderr.lines().last().unwrap_or("");
            let answers = String::from_utf8_lossy(&out.stdout);
            let _ = writeln!(wrong, "{}: {answers}{last}", out.status);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
