//! The description is complete, and the generated code follows `built.tsv`.

use kw_apigen::{
    Api, Built, Fortran, Words, api_dir, built_module, coverage, coverage_text, header, man_pages,
    shells,
};
use std::path::{Path, PathBuf};

fn api() -> Api {
    Api::read(&api_dir(Path::new(env!("CARGO_MANIFEST_DIR")))).unwrap()
}

fn fortran(api: &Api) -> Fortran {
    Fortran::read(&api_dir(Path::new(env!("CARGO_MANIFEST_DIR"))), api).unwrap()
}

fn words() -> Words {
    Words::read(&api_dir(Path::new(env!("CARGO_MANIFEST_DIR")))).unwrap()
}

/// A folder with test tables.
fn tables(test: &str, built: &str, forms: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("built.tsv"), format!("function\tmodule\n{built}")).unwrap();
    std::fs::write(
        dir.join("forms.tsv"),
        format!("function\tform\tof\n{forms}"),
    )
    .unwrap();
    dir
}

/// The lines that call Rust in the shells of some functions.
fn called(api: &Api, built: &Built, names: &[&str]) -> Vec<String> {
    let text = shells(api, built).unwrap();
    let call = |name: &&str| {
        let from = text.find(&format!("\"{name}\"")).unwrap();
        let mut lines = text[from..].lines();
        let line = lines.find(|l| l.contains("kw_mpi::built") || l.contains("unbuilt"));
        line.unwrap()
            .trim()
            .replace("unsafe { ", "")
            .replace(" }", "")
    };
    names.iter().map(call).collect()
}

#[test]
fn the_description_has_every_function_once() {
    let api = api();
    let mut names: Vec<&str> = api.functions.iter().map(|f| f.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 664);
    let twins = names
        .iter()
        .filter(|n| n.ends_with("_c") && names.contains(&&n[..n.len() - 2]));
    assert_eq!(twins.count(), 161);
    for f in &api.functions {
        for p in f.params.iter().filter(|p| p.length.is_some()) {
            assert!(
                p.c_type.contains(['*', '[']),
                "{}: {} has a length but is not an array",
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
    assert_eq!(
        man_pages(&api, &fortran(&api), &words(), &nothing)
            .unwrap()
            .len(),
        674
    );
    let rows = coverage(&api, &fortran(&api), &nothing);
    let built = rows.iter().filter(|c| c.built).count();
    assert_eq!(built, api.functions.iter().filter(|f| !f.code).count());
}

#[test]
fn coverage_counts_fortran_s_interfaces() {
    let api = api();
    let dir = tables(
        "coverage",
        "MPI_Send\tmpi::p2p\nMPI_Attr_get\tmpi::attr\n",
        "",
    );
    let built = Built::read(&dir, &api).unwrap();
    let rows = coverage(&api, &fortran(&api), &built);
    let of = |name: &str| rows.iter().find(|r| r.name == name).unwrap().fortran;
    assert_eq!(of("MPI_Send"), [true; 3]);
    assert_eq!(of("MPI_Send_c"), [true, false, false]);
    assert_eq!(of("MPI_Attr_get"), [false, true, true]);
    assert_eq!(of("MPI_T_init_thread"), [false; 3]);
    let text = coverage_text(&rows);
    let chapter = |name: &str| {
        let line = text.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // MPI_Send and its twin, which module mpi and mpif.h do not have
    assert_eq!(
        chapter("point-to-point"),
        "point-to-point 2 of 86 2 of 86 1 of 58 1 of 58"
    );
    assert!(text.contains("built   MPI_Send (point-to-point; mpi_f08 mpi mpif.h)\n"));
    assert!(text.contains("missing MPI_T_init_thread (tools; C only)\n"));
}

#[test]
fn one_rust_function_answers_for_all_forms_of_an_operation() {
    let api = api();
    let rows = [
        "MPI_Ssend\tsynchronous\tMPI_Send\n",
        "MPI_Issend\tnonblocking\tMPI_Ssend\n",
        "MPI_Irecv\tnonblocking\tMPI_Recv\n",
        "MPI_Barrier_init\tpersistent\tMPI_Barrier\n",
    ];
    let dir = tables(
        "forms",
        "MPI_Send\tmpi::p2p\nMPI_Recv\tmpi::p2p\nMPI_Barrier\tmpi::coll\n",
        &rows.concat(),
    );
    let built = Built::read(&dir, &api).unwrap();
    let names = [
        "MPI_Send",
        "MPI_Issend_c",
        "MPI_Recv",
        "MPI_Irecv",
        "MPI_Barrier_init",
        "MPI_Bsend",
    ];
    let data = "arg(buf), arg(count), arg(datatype)";
    assert_eq!(
        called(&api, &built, &names),
        [
            format!(
                "kw_mpi::built::send(mpi, {data}, arg(dest), arg(tag), arg(comm), Mode::Standard, Blocking(()))"
            ),
            format!(
                "kw_mpi::built::send(mpi, {data}, arg(dest), arg(tag), arg(comm), Mode::Synchronous, Nonblocking((arg(request), )))"
            ),
            format!(
                "kw_mpi::built::recv(mpi, {data}, arg(source), arg(tag), arg(comm), Blocking((arg(status), )))"
            ),
            format!(
                "kw_mpi::built::recv(mpi, {data}, arg(source), arg(tag), arg(comm), Nonblocking((arg(request), )))"
            ),
            "kw_mpi::built::barrier(mpi, arg(comm), Persistent((arg(info), arg(request), )))"
                .to_string(),
            "unbuilt()".to_string(),
        ]
    );
    let is_built = |name: &str| built.has(api.function(name).unwrap());
    assert!(is_built("MPI_Issend") && is_built("MPI_Issend_c") && !is_built("MPI_Ibarrier"));
    assert!(built_module(&built, "mpi").contains("pub use crate::calls::p2p::send; // "));
}

#[test]
fn what_is_wrong_in_the_tables_is_a_sentence() {
    let api = api();
    let wrong = |built: &str, forms: &str| {
        let error = Built::read(&tables("wrong", built, forms), &api).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        wrong("MPI_Sent\tp2p\n", ""),
        "built.tsv: MPI_Sent is not a function that returns an error code"
    );
    assert_eq!(
        wrong("MPI_Isend\tp2p\n", "MPI_Isend\tnonblocking\tMPI_Send\n"),
        "built.tsv: MPI_Isend is a form of another function (forms.tsv), whose row stands for it"
    );
    assert_eq!(
        wrong("", "MPI_Isend_c\tnonblocking\tMPI_Send\n"),
        "forms.tsv: MPI_Isend_c is not a function, or is the large-count twin of one"
    );
    assert_eq!(
        wrong("", "MPI_Ssend\tsynchronous\tMPI_Barrier\n"),
        "forms.tsv: MPI_Ssend has other parameters than MPI_Barrier, but is only another mode of it"
    );
    assert_eq!(
        wrong(
            "",
            "MPI_Isend\tnonblocking\tMPI_Send\nMPI_Send\tready\tMPI_Isend\n"
        )
        .split_once(": ")
        .unwrap()
        .1
        .split_once(' ')
        .unwrap()
        .1,
        "is a form of itself"
    );
    assert!(
        wrong("", "MPI_Isend\tlate\tMPI_Send\n")
            .starts_with("forms.tsv: the form of MPI_Isend is 'late', ")
    );
}

#[test]
fn the_words_are_whole() {
    let (api, words) = (api(), words());
    let known = |name: &String| assert!(api.function(name).is_some(), "{name} is not a function");
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
    let pages = man_pages(&api, &fortran(&api), &words, &Built::nothing()).unwrap();
    let page = |name: &str| &pages.iter().find(|(file, _)| file == name).unwrap().1;
    let bcast = page("MPI_Bcast.3");
    assert!(bcast.contains(".SH NAME\nMPI_Bcast, MPI_Bcast_c \\- broadcasts a buffer"));
    assert!(bcast.contains(".I count\nIn: number of elements (not bytes), 0 or more.\n"));
    for line in [
        "use mpi_f08\nMPI_Bcast(buffer, count, datatype, root, comm, ierror)\n",
        "\n    type(MPI_Comm), intent(in) :: comm\n    integer, optional, intent(out) :: ierror\n.fi\n",
        "\nMPI_BCAST(BUFFER, COUNT, DATATYPE, ROOT, COMM, IERROR)\n    <type> BUFFER(*)\n",
        "\nWith mpi_f08, count may also be integer(kind=MPI_COUNT_KIND).\n",
        "\nIn Fortran it comes in ierror, which may be left out with mpi_f08.\n",
    ] {
        assert!(bcast.contains(line), "{line:?} is not in {bcast}");
    }
    assert!(!page("MPI_T_init_thread.3").contains("Fortran"));
    assert!(!page("MPI_Attr_get.3").contains("use mpi_f08"));
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
