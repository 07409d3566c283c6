//! Compiling and running small C programs against the library that cargo has just built.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The description of MPI.
pub fn api() -> kw_apigen::Api {
    let dir = kw_apigen::api_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    kw_apigen::Api::read(&dir).unwrap()
}

/// A folder for one test's files, with `mpi.h` and `libmpi_abi.so.1` in it.
pub fn folder(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("mpi.h"), mpi_abi::HEADER).unwrap();
    std::os::unix::fs::symlink(library(), dir.join("libmpi_abi.so.1")).unwrap();
    dir
}

/// The shared library beside this test's executable.
pub fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let deps = exe.parent().unwrap();
    [deps.to_path_buf(), deps.parent().unwrap().to_path_buf()]
        .iter()
        .map(|d| d.join("libmpi_abi.so"))
        .find(|p| p.exists())
        .expect("cargo builds the library before its tests")
}

/// Runs a command; its failure fails the test.
pub fn run(command: &mut Command) -> Output {
    let out = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        out.status.success(),
        "{command:?}: {}\n{}{}",
        out.status,
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    out
}

/// Writes `source` to `dir/name.c` and compiles it to `dir/name`, linked to the library.
pub fn compile(dir: &Path, name: &str, source: &str) -> PathBuf {
    let file = dir.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let exe = dir.join(name);
    run(Command::new("cc")
        .args(["-std=c99", "-w", "-o"])
        .arg(&exe)
        .arg(&file)
        .arg("-I")
        .arg(dir)
        .arg(dir.join("libmpi_abi.so.1")));
    exe
}

/// A command that runs a compiled program with the library on its search path.
pub fn program(exe: &Path) -> Command {
    let mut command = Command::new(exe);
    command.env("LD_LIBRARY_PATH", exe.parent().unwrap());
    command
}

/// Standard output of a successful run.
pub fn output(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}
