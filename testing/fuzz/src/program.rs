//! The programs that search. They are instrumented to count edges, which stable Rust can do (`-C passes`), and built in a
//! folder of their own.

use sixfold_fuzz::Target;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Compiler flags: LLVM counts edges, and shows comparisons to libFuzzer.
const FLAGS: &str = "-C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares -C codegen-units=1";

/// The profile of the workspace for fuzzing: optimized, with all checks.
const PROFILE: &str = "fuzz";

/// Error of a search.
#[derive(Debug)]
pub enum Error {
    /// There is no target of this name. The names are those of the folders under `testing/fuzz/corpus`.
    NoTarget(String),
    /// A file or a program cannot be used.
    Io(PathBuf, io::Error),
    /// The programs could not be built. The compiler has printed the reason. libFuzzer needs a C++ compiler.
    Build,
    /// A program failed. The reason is in its log.
    Failed(PathBuf),
}

impl Error {
    /// An error with the path of its file.
    pub fn at(path: &Path, error: io::Error) -> Error {
        Error::Io(path.to_owned(), error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoTarget(name) => {
                write!(f, "there is no target {name:?}: name one of the folders under testing/fuzz/corpus")
            }
            Error::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Build => f.write_str(
                "the programs could not be built: see the compiler's messages above; libFuzzer needs a C++ compiler, like g++",
            ),
            Error::Failed(log) => write!(f, "a program failed: the reason is in {}", log.display()),
        }
    }
}

impl std::error::Error for Error {}

/// The folders of a search.
pub struct Programs {
    built: PathBuf,
    dir: PathBuf,
    corpus: PathBuf,
}

impl Programs {
    /// Builds the programs of some targets.
    ///
    /// # Errors
    ///
    /// `Error::Io`: a folder or cargo cannot be used. `Error::Build`: the compiler refuses.
    pub fn build(targets: &[Target], dir: &Path) -> Result<Programs, Error> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::create_dir_all(dir).map_err(|error| Error::at(dir, error))?;
        let dir = dir.canonicalize().map_err(|error| Error::at(dir, error))?;
        let host = host()?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.current_dir(package).env("RUSTFLAGS", FLAGS);
        cargo.args(["build", "--locked", "--features", "libfuzzer", "--profile", PROFILE, "--target", &host]);
        cargo.arg("--target-dir").arg(dir.join("build"));
        for target in targets {
            cargo.args(["--bin", &program_name(target)]);
        }
        match cargo.stdin(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            Ok(_) => return Err(Error::Build),
            Err(error) => return Err(Error::at(Path::new("cargo"), error)),
        }
        let built = dir.join("build").join(host).join(PROFILE);
        let programs = Programs { built, dir, corpus: package.join("corpus") };
        for target in targets {
            for folder in [programs.found(target), programs.kept(target), programs.failures(target)] {
                std::fs::create_dir_all(&folder).map_err(|error| Error::at(&folder, error))?;
            }
        }
        Ok(programs)
    }

    /// A command for the program of a target, without standard input.
    pub fn command(&self, target: &Target) -> Command {
        let mut command = Command::new(self.built.join(program_name(target)));
        command.stdin(Stdio::null()).current_dir(&self.dir);
        command
    }

    /// The folder of inputs that were found.
    pub fn found(&self, target: &Target) -> PathBuf {
        self.dir.join(target.name).join("found")
    }

    /// The folder of inputs that are kept in the project.
    pub fn kept(&self, target: &Target) -> PathBuf {
        self.corpus.join(target.name)
    }

    /// The folder of inputs that broke an invariant.
    pub fn failures(&self, target: &Target) -> PathBuf {
        self.dir.join(target.name).join("failures")
    }

    /// Another file of a target.
    pub fn file(&self, target: &Target, name: &str) -> PathBuf {
        self.dir.join(target.name).join(name)
    }
}

fn program_name(target: &Target) -> String {
    format!("fuzz_{}", target.name)
}

/// The target triple of this machine. If it is passed to Cargo, build scripts are not instrumented.
fn host() -> Result<String, Error> {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc).arg("-vV").output();
    let output = output.map_err(|error| Error::at(Path::new("rustc"), error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned).ok_or(Error::Build)
}

/// The files of a folder, sorted by name.
///
/// # Errors
///
/// `Error::Io`: the folder cannot be read.
pub fn inputs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|error| Error::at(folder, error))?;
    let paths: Result<Vec<PathBuf>, io::Error> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|error| Error::at(folder, error))?;
    paths.sort();
    Ok(paths)
}
