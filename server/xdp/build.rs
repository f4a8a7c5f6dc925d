//! Builds the XDP program for the feature `program`: clang compiles it, llvm-objcopy takes the instructions out. Without the feature it
//! does nothing, and needs neither.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Source of the program.
const SOURCE: &str = "bpf/steer.c";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_PROGRAM").is_none() {
        return;
    }
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=LLVM_OBJCOPY");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let (object, program) = (folder.join("steer.o"), folder.join("steer.bin"));
    compile(&object);
    extract(&object, &program);
}

/// Compiles the source. Version 3 of the instruction set has comparisons of 32 bits, which Linux 5.1 knows.
fn compile(object: &Path) {
    let order = std::env::var("CARGO_CFG_TARGET_ENDIAN").unwrap_or_default();
    let target = if order == "big" { "bpfeb" } else { "bpfel" };
    let mut clang = Command::new(tool("CLANG", "clang"));
    clang.args([
        "-target",
        target,
        "-mcpu=v3",
        "-O2",
        "-g0",
        "-ffreestanding",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    run(clang.args(["-I", "bpf", "-c", SOURCE, "-o"]).arg(object));
}

/// Takes the instructions out of the object file. The program has no other data, and no relocations.
fn extract(object: &Path, program: &Path) {
    let mut objcopy = Command::new(tool("LLVM_OBJCOPY", "llvm-objcopy"));
    run(objcopy.args(["-O", "binary", "--only-section=xdp"]).args([object, program]));
}

/// Name of a tool: that of an environment variable, else the usual one.
fn tool(variable: &str, usual: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| usual.to_owned())
}

fn run(command: &mut Command) {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{name} failed ({status}) for {SOURCE}"),
        Err(error) => panic!(
            "the feature `xdp` needs {name}: {error}; install it (Debian: apt-get install clang llvm), or build without the feature"
        ),
    }
}
