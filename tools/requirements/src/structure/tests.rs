//! Circles of small crates that are made up here.

use super::*;

/// The circles of a crate with these files.
fn found(files: &[(&str, &str)]) -> Vec<Circle> {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    circles_in("server/x", &files)
}

/// The files of each circle.
fn names(files: &[(&str, &str)]) -> Vec<String> {
    found(files).into_iter().map(|circle| circle.files).collect()
}

const LIB: (&str, &str) = ("lib.rs", "mod a; pub mod b;");

#[test]
fn two_files_that_import_each_other_are_a_circle_with_its_edges() {
    let circles = found(&[LIB, ("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::{self, A};")]);
    assert_eq!(circles.len(), 1);
    assert_eq!((&circles[0].folder[..], &circles[0].files[..]), ("server/x", "a.rs b.rs"));
    assert_eq!(circles[0].edges, ["a.rs -> b.rs (crate::b::B)", "b.rs -> a.rs (super::a, super::a::A)"]);
    assert_eq!(names(&[LIB, ("a.rs", "use crate::b::B;"), ("b.rs", "use std::fmt;")]), [""; 0]);
}

#[test]
fn a_path_in_an_expression_counts_and_so_does_one_through_an_imported_module() {
    let b = ("b.rs", "fn b() { crate::a::a() }");
    assert_eq!(names(&[LIB, ("a.rs", "fn a() -> super::b::B {}"), b]), ["a.rs b.rs"]);
    let files = [
        ("lib.rs", "mod a; mod c;"),
        ("a.rs", "use crate::c; fn a() { c::d::d() }"),
        ("c/mod.rs", "pub mod d;"),
        ("c/d.rs", "use crate::a::A;"),
    ];
    assert_eq!(names(&files), ["a.rs c/d.rs"]);
}

#[test]
fn a_circle_of_three_files_is_one_circle() {
    let lib = ("lib.rs", "mod a; mod b; mod c;");
    let files =
        [lib, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
    assert_eq!(names(&files), ["a.rs b.rs c.rs"]);
    assert_eq!(found(&files)[0].edges.len(), 3);
}

#[test]
fn a_module_and_its_children_may_use_each_other() {
    let files = [
        ("lib.rs", "mod a; pub use a::A; pub struct Error;"),
        ("a.rs", "use crate::Error; use super::Error;"),
    ];
    assert_eq!(names(&files), [""; 0]);
}

#[test]
fn a_path_through_a_re_export_leads_to_the_file_of_the_name() {
    let lib = ("lib.rs", "mod a; pub mod b; pub use b::{B as Renamed};");
    let b = ("b.rs", "use crate::a::A;");
    assert_eq!(names(&[lib, ("a.rs", "use crate::Renamed;"), b]), ["a.rs b.rs"]);
    assert_eq!(names(&[lib, ("a.rs", "use crate::Other;"), b]), [""; 0]);
    // The name may also come to the parent by an import of its own.
    let lib = ("lib.rs", "mod a; mod b; use b::B;");
    assert_eq!(names(&[lib, ("a.rs", "use super::B;"), b]), ["a.rs b.rs"]);
}

#[test]
fn comments_literals_lifetimes_and_tests_do_not_count() {
    let b = ("b.rs", "use crate::a::A;");
    for a in [
        "// use crate::b::B;\n/* crate::b::b() */",
        "const A: &str = \"\\\" crate::b::B\"; const C: char = '\"'; const D: char = '\\'';",
        "const A: &str = r#\" \" crate::b::B \"#;",
        "#[cfg(test)] mod tests { use crate::b::B; fn t() { let x = \"}\"; } fn u() { crate::b::b() } }",
        "#[cfg(test)] use crate::b::B;",
        "#[cfg(test)] #[path = \"a_tests.rs\"] mod tests;",
    ] {
        assert_eq!(names(&[LIB, ("a.rs", a), b]), [""; 0], "{a}");
        let live = format!("{a}\nfn f<'a>(x: &'a str) -> crate::b::B<'a> {{}}");
        assert_eq!(names(&[LIB, ("a.rs", &live), b]), ["a.rs b.rs"], "{a}");
    }
}

#[test]
fn a_program_beside_the_library_has_modules_of_its_own() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", ""),
        ("bin/tool/main.rs", "mod a; mod b;"),
        ("bin/tool/a.rs", "use crate::b::B;"),
        ("bin/tool/b.rs", "use crate::a::A;"),
    ];
    assert_eq!(names(&files), ["bin/tool/a.rs bin/tool/b.rs"]);
}

#[test]
fn a_new_circle_and_an_entry_without_a_circle_are_faults() {
    let circles = found(&[LIB, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")]);
    let entry = ("server/x", "a.rs b.rs", "one idea");
    assert_eq!(faults(&circles, &[entry]), [""; 0]);
    let new = faults(&circles, &[]);
    assert!(new.len() == 1 && new[0].contains("a.rs -> b.rs (crate::b::B)"), "{new:?}");
    assert!(new[0].contains("leaf file below both"), "{new:?}");
    let gone = faults(&[], &[entry]);
    assert!(gone.len() == 1 && gone[0].contains("delete its entry"), "{gone:?}");
    // An entry holds for the whole circle of its crate: not for a part of it, and not elsewhere.
    assert_eq!(faults(&circles, &[("server/x", "a.rs", "")]).len(), 2);
    assert_eq!(faults(&circles, &[("server/y", "a.rs b.rs", "")]).len(), 2);
}
