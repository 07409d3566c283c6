//! The description is whole, and what is generated from it follows what is built.

use kw_apigen::{Api, Built, Words, coverage, header, man_pages, shells, workspace_paths};
use std::path::{Path, PathBuf};

fn api() -> Api {
    Api::read(&workspace_paths(Path::new(env!("CARGO_MANIFEST_DIR"))).0).unwrap()
}

fn words() -> Words {
    Words::read(&workspace_paths(Path::new(env!("CARGO_MANIFEST_DIR"))).0).unwrap()
}

/// A folder of calls with one file in it.
fn calls(test: &str, text: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("p2p.rs"), text).unwrap();
    dir
}

#[test]
fn the_description_has_every_function_once() {
    let api = api();
    let mut names: Vec<&str> = api.functions.iter().map(|f| f.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 674);
    let twins = names
        .iter()
        .filter(|n| n.ends_with("_c") && names.contains(&&n[..n.len() - 2]));
    assert_eq!(twins.count(), 161);
    for f in &api.functions {
        for p in f.params.iter().filter(|p| p.length.is_some()) {
            assert!(
                p.c_type.contains(['*', '[']),
                "{}: {} has a length but is no array",
                f.name,
                p.name
            );
        }
    }
}

#[test]
fn everything_is_generated_even_when_nothing_is_built() {
    let (api, nothing) = (api(), Built::nothing());
    let (text, head) = (shells(&api, &nothing).unwrap(), header(&api, &words()));
    for f in &api.functions {
        assert!(
            head.contains(&format!(" {}(", f.name)),
            "{} is not in the header",
            f.name
        );
        assert!(
            !f.code || text.contains(&format!(" P{}(", f.name)),
            "{} has no shell",
            f.name
        );
    }
    assert_eq!(man_pages(&api, &words(), &nothing).unwrap().len(), 674);
    let built = coverage(&api, &nothing).iter().filter(|c| c.built).count();
    assert_eq!(built, api.functions.iter().filter(|f| !f.code).count());
}

#[test]
fn a_built_function_answers_for_its_large_count_twin() {
    let text = "pub fn send(mpi: &Mpi, buf: Addr, count: i64, datatype: TypeH, dest: i32, tag: i32, comm: CommH) -> Res {\n";
    let api = api();
    let built = Built::scan(&calls("twin", text), &api).unwrap();
    for name in ["MPI_Send", "MPI_Send_c"] {
        assert_eq!(
            built.path(api.function(name).unwrap(), &api),
            Some("p2p::send")
        );
    }
    assert_eq!(built.path(api.function("MPI_Recv").unwrap(), &api), None);
}

#[test]
fn a_wrong_number_of_parameters_is_a_sentence() {
    let text = "pub fn barrier(mpi: &Mpi, comm: CommH, tag: i32) -> Res {\n";
    let error = Built::scan(&calls("wrong", text), &api()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kw_mpi::calls::p2p::barrier takes 2 parameters after mpi, but MPI_Barrier has 1"
    );
}

#[test]
fn the_words_are_whole() {
    let (api, words) = (api(), words());
    let known = |name: &String| assert!(api.function(name).is_some(), "{name} is no function");
    let own = api.functions.iter().filter(|f| f.twin_of.is_none());
    assert_eq!(words.summaries.len(), own.count());
    for (name, summary) in &words.summaries {
        known(name);
        summary.see.iter().for_each(known);
        assert!(
            summary.text.starts_with(|c: char| c.is_ascii_lowercase())
                && !summary.text.ends_with('.'),
            "{name}: {}",
            summary.text
        );
    }
    for (name, text) in &words.texts {
        known(name);
        let whole = !text.details.is_empty() && !text.mistakes.is_empty();
        assert!(whole && text.example.contains("MPI_Finalize"), "{name}.md");
    }
    assert!(words.texts.len() >= 30);
}

#[test]
fn a_page_speaks_plainly() {
    let (api, words) = (api(), words());
    let pages = man_pages(&api, &words, &Built::nothing()).unwrap();
    let page = |name: &str| &pages.iter().find(|(file, _)| file == name).unwrap().1;
    let bcast = page("MPI_Bcast.3");
    assert!(bcast.contains(".SH NAME\nMPI_Bcast, MPI_Bcast_c \\- broadcasts a buffer"));
    assert!(bcast.contains(".I count\nIn: number of elements (not bytes), 0 or more.\n"));
    assert!(bcast.contains(".B MPI_ERR_ROOT\n") && bcast.contains("Not built yet"));
    assert!(page("MPI_Init.3").contains("not after MPI_Finalize"));
    assert!(!page("MPI_Init.3").contains("at any time, also"));
    assert!(page("MPI_Attr_get.3").contains("new programs use MPI_Comm_get_attr"));
    assert!(page("MPI_Address.3").contains("New programs use MPI_Get_address"));
    for (file, text) in &pages {
        for p in api.functions.iter().flat_map(|f| &f.params) {
            let raw = p.kind.to_ascii_lowercase().replace('_', " ");
            assert!(
                !raw.starts_with("poly") || !text.contains(&raw),
                "{file}: {raw}"
            );
        }
    }
}
