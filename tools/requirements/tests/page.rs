//! The page in the repository must agree with the citations.

#[test]
fn the_page_is_what_list_and_citations_say() {
    let page = sixfold_requirements::page().unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
    let file = sixfold_requirements::workspace().join(sixfold_requirements::PAGE);
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = page.lines().zip(found.lines()).find(|(wanted, found)| wanted != found);
    assert!(
        page == found,
        "{} is out of date; write it with `cargo run -p sixfold-requirements`. First difference: {differs:#?}",
        file.display()
    );
}
