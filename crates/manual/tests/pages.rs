//! The checked-in manual pages are those that the generator writes.

#[test]
fn the_manual_pages_agree_with_the_definitions_behind_help() {
    for page in sixfold_manual::pages() {
        let path = page.path();
        let text = std::fs::read_to_string(&path).unwrap();
        let written = page.rewrite(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (is, should) in text.lines().zip(written.lines()) {
            assert_eq!(is, should, "{}: run cargo run -p sixfold-manual", path.display());
        }
        assert_eq!(text.lines().count(), written.lines().count(), "{}", path.display());
        assert!(text.contains("generated: synopsis"), "{}", path.display());
    }
}

#[test]
fn every_visible_command_has_a_block() {
    use clap::CommandFactory;
    for (page, command) in
        sixfold_manual::pages().iter().zip([sixfold::cli::Cli::command(), bench::cli::Cli::command()])
    {
        let text = std::fs::read_to_string(page.path()).unwrap();
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let block = format!("generated: options {}\n", command.get_name());
            assert!(text.contains(&block), "{}: no {block}", page.path().display());
        }
    }
}
