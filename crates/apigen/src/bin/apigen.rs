//! `apigen header | parameters | coverage | shells | fortran-shells | fortran-names | fortran DIR | man DIR |
//! abi-header ABI | abi-shells ABI | abi-names ABI | abi-mpif ABI | abi-f08 ABI |
//! abi-fortran-names ABI | abi-fortran-exports ABI`: writes what follows from `api/`. Runs from the root of the repository.
#![forbid(unsafe_code)]

use kw_apigen::{
    Abi, Api, Built, Error, Fortran, FortranAbi, Words, abi_aliases, abi_header, abi_shells,
    coverage, coverage_text, foreign_module, foreign_symbols, fortran_shells, header, include_file,
    man_pages, module_files, shells, symbols,
};
use std::path::Path;

const USAGE: &str = "usage: apigen header | parameters | coverage | shells | fortran-shells | fortran-names | fortran DIR | man DIR | abi-header ABI | abi-shells ABI | abi-names ABI | abi-mpif ABI | abi-f08 ABI | abi-fortran-names ABI | abi-fortran-exports ABI   (from the root of the repository)";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(e) = run(&words) {
        eprintln!("apigen: {e}");
        std::process::exit(1);
    }
}

fn run(words: &[&str]) -> Result<(), Error> {
    let api = Api::read(Path::new("api"))?;
    let built = || Built::read(Path::new("api"), &api);
    let fortran = || Fortran::read(Path::new("api"), &api);
    let abi = |name: &str| Abi::read(Path::new("api"), name, &api);
    let words_of_api = || Words::read(Path::new("api"));
    match words {
        ["header"] => print!("{}", header(&api, &words_of_api()?)),
        ["parameters"] => parameters(&api),
        ["coverage"] => print!("{}", coverage_text(&coverage(&api, &fortran()?, &built()?))),
        ["shells"] => print!("{}", shells(&api, &built()?)?),
        ["fortran-shells"] => print!(
            "{}",
            fortran_shells(&FortranAbi::standard(&api), &fortran()?)?
        ),
        ["fortran-names"] => print!("{}", symbols(&api, &fortran()?).linker_options()),
        ["fortran", dir] => write_fortran(Path::new(dir), &api, &fortran()?)?,
        ["abi-header", name] => print!("{}", abi_header(&api, &abi(name)?, &words_of_api()?)),
        ["abi-shells", name] => print!("{}", abi_shells(&api, &abi(name)?)?),
        ["abi-names", name] => print!("{}", abi_aliases(&api, &abi(name)?)),
        ["abi-mpif", name] => {
            let abi = abi(name)?;
            print!("{}", include_file(&FortranAbi::of(&api, &abi), &fortran()?));
        }
        ["abi-f08", name] => {
            let abi = abi(name)?;
            print!(
                "{}",
                foreign_module(&FortranAbi::of(&api, &abi), &fortran()?)?
            );
        }
        ["abi-fortran-names", name] => {
            let abi = abi(name)?;
            let names = foreign_symbols(&FortranAbi::of(&api, &abi), &fortran()?);
            print!("{}", names.linker_options());
        }
        ["abi-fortran-exports", name] => {
            let abi = abi(name)?;
            let names = foreign_symbols(&FortranAbi::of(&api, &abi), &fortran()?);
            print!("{}", names.exports());
        }
        ["man", dir] => man(Path::new(dir), &api, &fortran()?, &built()?)?,
        _ => return Err(Error(USAGE.to_string())),
    }
    Ok(())
}

/// The parameters of every function, also those that `parameters.tsv` has no rows for.
fn parameters(api: &Api) {
    println!("function\tname\tc_type\tkind\tdirection");
    for f in &api.functions {
        for p in &f.params {
            let direction = format!("{:?}", p.direction).to_lowercase();
            println!(
                "{}\t{}\t{}\t{}\t{direction}",
                f.name, p.name, p.c_type, p.kind
            );
        }
    }
}

fn man(dir: &Path, api: &Api, fortran: &Fortran, built: &Built) -> Result<(), Error> {
    let bad = |e: std::io::Error| Error(format!("cannot write to {}: {e}", dir.display()));
    std::fs::create_dir_all(dir).map_err(bad)?;
    let words = Words::read(Path::new("api"))?;
    for (file, text) in man_pages(api, fortran, &words, built)? {
        std::fs::write(dir.join(file), text).map_err(bad)?;
    }
    Ok(())
}

/// mpif.h, the modules' sources, and the order in which they are compiled.
fn write_fortran(dir: &Path, api: &Api, fortran: &Fortran) -> Result<(), Error> {
    let bad = |e: std::io::Error| Error(format!("cannot write to {}: {e}", dir.display()));
    std::fs::create_dir_all(dir).map_err(bad)?;
    std::fs::write(
        dir.join("mpif.h"),
        include_file(&FortranAbi::standard(api), fortran),
    )
    .map_err(bad)?;
    let mut order = String::new();
    for (file, text) in module_files(api, fortran) {
        std::fs::write(dir.join(file), text).map_err(bad)?;
        order += &format!("{file}\n");
    }
    std::fs::write(dir.join("order"), order).map_err(bad)?;
    Ok(())
}
