//! Debian packages: lintian, and their life in clean roots of Debian 12 and 13.

use crate::{run, skips, source, text};
use serde_json::Value;
use sixfold_interop::{Scratch, debian_mirror, program};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, Weak};

/// Programs that make the packages and the roots.
const PROGRAMS: [&str; 7] = ["dpkg-buildpackage", "dh", "mmdebstrap", "unshare", "findmnt", "dig", "ip"];

/// Exit status of `debian-root` on a machine that cannot make such a root.
const CANNOT: i32 = 77;

/// Version of the packages that replace the first ones: like the first, but higher.
const UPGRADE: &str = "9999-1";

/// Packages in two versions.
struct Packages {
    _scratch: Scratch,
    old: PathBuf,
    new: PathBuf,
}

/// Packages of this build, made once for the tests that run at the same time. The last of them removes the files.
fn packages() -> Arc<Packages> {
    static PACKAGES: Mutex<Weak<Packages>> = Mutex::new(Weak::new());
    let mut made = PACKAGES.lock().expect("the packages could be built");
    made.upgrade().unwrap_or_else(|| {
        let packages = Arc::new(build());
        *made = Arc::downgrade(&packages);
        packages
    })
}

/// Builds the packages in both versions.
fn build() -> Packages {
    let scratch = Scratch::new();
    let (old, new) = (scratch.directory("old"), scratch.directory("new"));
    let binaries = Path::new(&program("sixfold")).parent().expect("a program is in a folder").to_owned();
    program("sixfold-bench");
    let built = run(
        300,
        Command::new(source().join("packaging/build-deb"))
            .arg("--binaries")
            .arg(binaries)
            .arg("--output")
            .arg(&old)
            // Nobody keeps these packages, so there is no reason to compress them well.
            .env("DPKG_DEB_COMPRESSOR_TYPE", "gzip")
            .env("DPKG_DEB_COMPRESSOR_LEVEL", "1")
            .env("DEB_BUILD_OPTIONS", "noautodbgsym"),
    );
    assert!(built.status.success(), "{}", text(&built));
    for package in ["sixfold", "sixfold-bench", "sixfold-recursive"] {
        upgrade(scratch.path(), package, &old, &new);
    }
    Packages { _scratch: scratch, old, new }
}

/// Path of a package in a folder.
fn package_file(folder: &Path, package: &str) -> PathBuf {
    let start = format!("{package}_");
    let files = std::fs::read_dir(folder).expect("the folder of the packages");
    let mut paths = files.flatten().map(|entry| entry.path());
    let is_wanted =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start));
    paths.find(is_wanted).unwrap_or_else(|| panic!("no {package} in {}", folder.display()))
}

/// Packs a package once more, with the version [`UPGRADE`].
fn upgrade(scratch: &Path, package: &str, old: &Path, new: &Path) {
    let tree = scratch.join(format!("tree-{package}"));
    let script = "dpkg-deb --raw-extract \"$1\" \"$2\" && sed -i \"s/^Version: .*/Version: $3/\" \"$2/DEBIAN/control\" && \
                  dpkg-deb -Znone --build \"$2\" \"$4\"";
    let target = new.join(format!("{package}_{UPGRADE}.deb"));
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(package_file(old, package)).arg(&tree).arg(UPGRADE).arg(target);
    let packed = run(100, &mut command);
    assert!(packed.status.success(), "{}", text(&packed));
}

/// Installs the packages in a clean root, edits one line, asks, upgrades, removes and purges.
fn life_in(suite: &str) {
    if skips(&PROGRAMS) {
        return;
    }
    let scratch = Scratch::new();
    let packages = packages();
    let mut command = Command::new(source().join("packaging/tests/debian-root"));
    command.arg(suite).arg(&packages.old).arg(&packages.new).arg(scratch.path()).args(debian_mirror());
    let ran = run(600, &mut command);
    let said = text(&ran);
    if ran.status.code() == Some(CANNOT) {
        kit::skip(said.lines().last().unwrap_or_default());
        return;
    }
    assert!(ran.status.success() && said.contains(&format!("{suite}: done")), "{said}");
}

#[test]
#[ignore = "long: packages are built, and installed in a root of their own"]
fn the_packages_live_and_go_in_a_clean_debian_12() {
    life_in("bookworm");
}

#[test]
#[ignore = "long: packages are built, and installed in a root of their own"]
fn the_packages_live_and_go_in_a_clean_debian_13() {
    life_in("trixie");
}

/// Builds the server in bare roots with the packages of the README, and tries the demonstration there.
#[test]
#[ignore = "long: two builds in roots of their own take minutes"]
fn the_packages_that_the_readme_names_are_enough_on_debian_12_and_13() {
    if skips(&["mmdebstrap", "unshare", "ip"]) {
        return;
    }
    let scratch = Scratch::new();
    let target = scratch.directory("target");
    for suite in ["bookworm", "trixie"] {
        let mut command = Command::new(source().join("packaging/tests/build-root"));
        command.arg(suite).arg(source()).arg(&target).arg(scratch.directory(suite)).args(debian_mirror());
        let ran = run(1500, &mut command);
        let said = text(&ran);
        if ran.status.code() == Some(CANNOT) {
            kit::skip(said.lines().last().unwrap_or_default());
            return;
        }
        assert!(ran.status.success() && said.contains(&format!("{suite}: done")), "{said}");
    }
}

/// The units that cargo compiles for a build: each with its package, target, profile and features, and with all units that it depends
/// on, build scripts and procedural macros included. cargo compiles one again where any of these differs.
fn units(build: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(source()).args(build).args(["--offline", "--unit-graph", "-Z", "unstable-options"]);
    // The list is an unstable option; it compiles nothing.
    let listed = run(60, command.env("RUSTC_BOOTSTRAP", "1"));
    assert!(listed.status.success(), "{}", text(&listed));
    let graph: Value = serde_json::from_slice(&listed.stdout).expect("the unit graph is JSON");
    assert_eq!(graph["version"], 1, "cargo's unit graph has another form");
    let units = graph["units"].as_array().expect("units");
    let mut shown: Vec<Option<String>> = vec![None; units.len()];
    (0..units.len()).map(|place| show_unit(units, place, &mut shown)).collect()
}

/// A unit in words: equal for equal units of two graphs.
fn show_unit(units: &[Value], place: usize, shown: &mut [Option<String>]) -> String {
    if let Some(known) = &shown[place] {
        return known.clone();
    }
    let unit = &units[place];
    let mut below = Vec::new();
    for edge in unit["dependencies"].as_array().expect("dependencies") {
        let index = edge["index"].as_u64().expect("the number of a unit") as usize;
        let of_unit = show_unit(units, index, shown);
        below.push((edge["extern_crate_name"].to_string(), of_unit));
    }
    below.sort();
    let mut hasher = DefaultHasher::new();
    below.hash(&mut hasher);
    let fields = ["pkg_id", "target", "mode", "platform", "features", "profile"].map(|field| &unit[field]);
    let text = format!("{fields:?}, dependencies {:x}", hasher.finish());
    shown[place] = Some(text.clone());
    text
}

/// The build of `make deb` compiles nothing again that a build of one of its programs has compiled: they agree in all features and profiles.
#[test]
fn the_packages_are_built_from_what_an_earlier_build_has_compiled() {
    let script = std::fs::read_to_string(source().join("packaging/build-deb")).expect("build-deb");
    let build = script.split("&& cargo ").nth(1).and_then(|rest| rest.split(')').next()).expect("its build");
    let words: Vec<&str> = build.split_whitespace().collect();
    assert!(
        words.windows(2).any(|pair| pair == ["--profile", "dist"])
            && words.ends_with(&["-p", "sixfold", "-p", "sixfold-bench"]),
        "{build}"
    );
    let packages = units(&words);
    for program in ["sixfold", "sixfold-bench"] {
        let earlier = units(&["build", "--profile", "dist", "--locked", "-p", program]);
        assert!(earlier.len() > 150 && earlier.len() < packages.len(), "{}", earlier.len());
        let again: Vec<_> = earlier.difference(&packages).collect();
        assert!(again.is_empty(), "compiled again after {program}: {again:#?}");
    }
    // A unit of other features is another one, and so is all that depends on it.
    let other = units(&["build", "--profile", "dist", "--locked", "-p", "sixfold", "--features", "xdp"]);
    let again = |name: &str| other.difference(&packages).any(|unit| unit.contains(name));
    assert!(again("server/datapath#") && again("server/sixfold#") && !again("server/wire#"), "{other:#?}");
}

#[test]
#[ignore = "long: packages are built"]
fn lintian_finds_no_error_in_the_packages() {
    if skips(&["dpkg-buildpackage", "dh", "lintian"]) {
        return;
    }
    let mut command = Command::new("lintian");
    command.args(["--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0"]);
    let packages = packages();
    command.args(
        ["sixfold", "sixfold-bench", "sixfold-recursive"].map(|package| package_file(&packages.old, package)),
    );
    let ran = run(300, &mut command);
    assert!(ran.status.success(), "{}", text(&ran));
}
