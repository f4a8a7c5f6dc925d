//! The book: mdBook builds it, every link of the result leads somewhere, and it needs no network.

use sixfold_interop::{Debian13, Scratch};

#[test]
fn mdbook_builds_the_book_and_every_link_of_it_leads_somewhere() {
    let Some(debian) = Debian13::get() else { return };
    let scratch = Scratch::new();
    let book = scratch.path().join("book");
    book::stage(&book::workspace(), &book).unwrap_or_else(|fault| panic!("{fault}"));
    let built = debian.run(scratch.path(), &["/usr/bin/mdbook", "build", "/mnt/book"]);
    assert!(built.success && !built.stderr.contains("[ERROR]"), "{}", built.stderr);
    let faults = book::site::faults(&book.join("html")).expect("the pages can be read");
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
