//! The checked-in manual pages are those that the generator writes.

use std::collections::BTreeSet;

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
        assert_eq!(text.contains("generated: synopsis"), page.has_commands(), "{}", path.display());
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

#[test]
fn the_page_of_the_configuration_has_every_key_and_no_other() {
    let pages = sixfold_manual::pages();
    let page = pages.iter().find(|page| !page.has_commands()).unwrap();
    let described = sixfold::config::described();
    let keys: Vec<String> = described.iter().map(|key| format!("{}.{}", key.table, key.name)).collect();
    assert!(keys.len() > 85 && keys.iter().collect::<BTreeSet<_>>().len() == keys.len(), "{keys:?}");
    let on_page = book::keys(&std::fs::read_to_string(page.path()).unwrap());
    assert_eq!(on_page.iter().collect::<BTreeSet<_>>(), keys.iter().collect());
    // The next lines would be part of a paragraph without an end.
    for key in described {
        assert!(key.text.trim_end().ends_with(['.', ':', ';']), "{}.{}", key.table, key.name);
    }
}

#[test]
fn every_page_has_a_date_and_the_parts_that_readers_look_for() {
    for page in sixfold_manual::pages() {
        let text = std::fs::read_to_string(page.path()).unwrap();
        let path = page.path().display().to_string();
        let date = text.split('"').nth(1).unwrap();
        let is_date = date.len() == 10 && date.split('-').all(|part| part.parse::<u16>().is_ok());
        assert!(is_date, "{path}: {date}");
        for heading in ["SYNOPSIS", "FILES", "EXAMPLES", "STANDARDS", "BUGS", "SEE ALSO"] {
            assert!(text.contains(&format!("\n.SH {heading}\n")), "{path}: no {heading}");
        }
        // A path of the source tree leads nowhere in a package.
        let of_source = text.lines().filter(|line| line.contains("docs/") && !line.contains("in the source"));
        assert_eq!(
            of_source.filter(|line| !line.starts_with(".IR docs/")).collect::<Vec<_>>(),
            [""; 0],
            "{path}"
        );
    }
}
