//! Every function of the tool interface, outside initialisation and without places for results,
//! returns the right class and does not crash.
//!
//! The C program is generated from the description.

mod common;

use kw_apigen::{Api, Function, Param};

const HEAD: &str = "\
#include <mpi.h>
#include <stdio.h>
static int bad;
static MPI_T_enum an_enum;
static MPI_T_cvar_handle a_cvar;
static MPI_T_pvar_session a_session;
static MPI_T_pvar_handle a_pvar;
static MPI_T_event_registration a_registration;
static void closed(const char *what, int code) {
    if (code != MPI_T_ERR_NOT_INITIALIZED) { printf(\"%s: %d\\n\", what, code); bad++; }
}
static void sane(const char *what, int code) {
    if (code != 0 && (code < MPI_T_ERR_CANNOT_INIT || code > MPI_T_ERR_PVAR_NO_ATOMIC)) {
        printf(\"%s: %d\\n\", what, code);
        bad++;
    }
}
static void handles(void) {
    int count;
    MPI_T_cvar_get_index(\"KW_WRITE\", &count);
    MPI_T_cvar_get_info(count, 0, 0, 0, 0, &an_enum, 0, 0, 0, 0);
    MPI_T_cvar_handle_alloc(0, 0, &a_cvar, &count);
    MPI_T_pvar_session_create(&a_session);
    MPI_T_pvar_handle_alloc(a_session, 0, 0, &a_pvar, &count);
    MPI_T_event_handle_alloc(0, 0, MPI_INFO_NULL, &a_registration);
}
";

const MAIN: &str = "\
int main(void) {
    int level;
    all_closed();
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    all_without_places();
    MPI_Init(0, 0);
    all_without_places();
    MPI_Finalize();
    all_without_places();
    MPI_T_finalize();
    all_closed();
    return bad != 0;
}
";

/// A value for a parameter: a handle that is good, zero, and null for every pointer.
fn value(p: &Param, api: &Api) -> String {
    let by_value = !p.c_type.contains(['*', '[']);
    let good = match p.c_type.as_str() {
        "MPI_T_enum" => "an_enum",
        "MPI_T_cvar_handle" => "a_cvar",
        "MPI_T_pvar_session" => "a_session",
        "MPI_T_pvar_handle" => "a_pvar",
        "MPI_T_event_registration" => "a_registration",
        "MPI_Info" => "MPI_INFO_NULL",
        _ => "0",
    };
    match by_value && api.form(&p.c_type) == Some("handle") {
        true => good.to_string(),
        false => "0".to_string(),
    }
}

fn calls(functions: &[&Function], api: &Api, check: &str) -> String {
    let call = |f: &&Function| {
        let args: Vec<String> = f.fixed_params().map(|p| value(p, api)).collect();
        let (name, args) = (&f.name, args.join(", "));
        format!("    {check}(\"{name}\", {name}({args}));\n")
    };
    functions.iter().map(call).collect()
}

#[test]
fn outside_its_life_and_without_places_every_function_answers_a_class() {
    let api = common::api();
    let all: Vec<&Function> = api.functions.iter().filter(|f| f.is_tool()).collect();
    assert_eq!(all.len(), 51);
    let but = |names: &[&str]| -> Vec<&Function> {
        let all = all.iter().filter(|f| !names.contains(&f.name.as_str()));
        all.copied().collect()
    };
    let outside = but(&["MPI_T_init_thread"]);
    // The ends of the handles come last.
    let mut inside = but(&["MPI_T_init_thread", "MPI_T_finalize"]);
    inside.sort_by_key(|f| f.name.contains("free"));
    let source = format!(
        "{HEAD}static void all_closed(void) {{\n{}}}\nstatic void all_without_places(void) {{\n    handles();\n{}}}\n{MAIN}",
        calls(&outside, &api, "closed"),
        calls(&inside, &api, "sane"),
    );
    let dir = common::folder("tools");
    let exe = common::compile(&dir, "tools", &source);
    common::run(&mut common::program(&exe));
}
