//! `mpi.h` of another ABI, for tests: our own programs, compiled as if for that library.

use super::{Abi, Fact};
use crate::{Api, Constant, Words, header};

const ENDING: &str = "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";

/// The header: that of this library with the other ABI's types and values.
pub fn abi_header(api: &Api, abi: &Abi, words: &Words) -> String {
    let text = header(&translated(api, abi), words);
    let mut more = String::new();
    for f in abi.of_form("symbol") {
        let c = api.constants.iter().find(|c| c.name == f.name);
        let ty = c.map_or("void *", |c| &c.c_type);
        more += &format!("extern {ty} const {};\n", f.name);
    }
    for (name, symbol, _) in abi.objects() {
        more += &format!("extern struct kw_object {symbol};\n");
        if let Some(r) = api.removed.iter().find(|r| r.name == name) {
            more += &format!("#define {name} (({})(void *)&{symbol})\n", r.form);
        }
    }
    let functions = abi.of_form("function").map(|f| f.value.as_str());
    for name in functions.collect::<std::collections::BTreeSet<_>>() {
        more += &format!("int {name}(MPI_Comm, int, void *, void *, void *, int *);\n");
    }
    match text.strip_suffix(ENDING) {
        Some(start) => format!("{start}{more}{ENDING}"),
        None => text + &more,
    }
}

/// The description with the other ABI's values.
fn translated(api: &Api, abi: &Abi) -> Api {
    let mut api = api.clone();
    let handles: Vec<String> = abi.of_form("type").map(|f| f.name.clone()).collect();
    for t in &mut api.types {
        if let Some(f) = abi.facts.iter().find(|f| f.name == t.name) {
            if f.form == "type" {
                t.form = "integer".into();
            }
            t.definition = f.value.clone();
        }
        if t.form == "enum" {
            t.definition = enumerators(&t.definition, abi);
        }
    }
    let has = |c: &Constant| {
        let in_c = |f: &&Fact| ["value", "object", "function"].contains(&f.form.as_str());
        let fact = abi.facts.iter().filter(in_c).find(|f| f.name == c.name);
        let version = ["MPI_VERSION", "MPI_SUBVERSION"].contains(&c.name.as_str());
        version || c.c_type == "alias" || fact.is_some()
    };
    api.constants.retain(has);
    for c in &mut api.constants {
        constant(c, abi, &handles);
    }
    let is_object = |name: &str| abi.objects().any(|o| o.0 == name);
    api.removed.retain(|r| !is_object(&r.name));
    for r in &mut api.removed {
        if let Some(f) = abi.of_form("value").find(|f| f.name == r.name) {
            r.definition = f.value.clone();
        }
    }
    api
}

fn constant(c: &mut Constant, abi: &Abi, handles: &[String]) {
    if let Some(f) = abi.of_form("function").find(|f| f.name == c.name) {
        c.value = format!("(({}){})", c.c_type, f.value);
        c.c_type = "alias".into();
    }
    if let Some((_, symbol, _)) = abi.objects().filter(|o| o.0 == c.name).last() {
        c.value = format!("(void *)&{symbol}");
    }
    if let Some(f) = abi.of_form("value").find(|f| f.name == c.name) {
        c.value = f.value.clone();
        // a number above the maximum of int, which a cast to int makes negative
        if c.c_type == "int" && f.value.starts_with("0x") || handles.contains(&c.c_type) {
            c.value = format!("(int){}", f.value);
        }
    }
}

fn enumerators(definition: &str, abi: &Abi) -> String {
    let each = definition.split(' ').map(|e| {
        let name = e.split('=').next().unwrap_or(e);
        match abi.value(name) {
            Some(value) => format!("{name}={value}"),
            None => e.to_string(),
        }
    });
    each.collect::<Vec<_>>().join(" ")
}
