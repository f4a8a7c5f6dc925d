//! The blocks of a page: where they begin and end, what they are about, and the parts of the old block that are kept.

use crate::{entries, synopsis};
use clap::Command;
use std::collections::BTreeMap;

const BEGIN: &str = ".\\\" generated: ";
const END: &str = ".\\\" end";
const ENTRY: &str = ".\\\" entry: ";
const MORE: &str = ".\\\" more";

/// Text written by hand after the generated text of an entry, by the name of the entry.
pub type Kept = BTreeMap<String, String>;

/// Writes the generated blocks of a page anew.
pub fn rewrite(page: &str, program: &Command) -> Result<String, String> {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text += &format!("{line}\n");
        let Some(subject) = line.strip_prefix(BEGIN) else { continue };
        let mut old = Vec::new();
        loop {
            match lines.next() {
                Some(line) if line == END => break,
                Some(line) if !line.starts_with(BEGIN) => old.push(line),
                _ => return Err(format!("the block `{subject}` has no line `{END}`")),
            }
        }
        text += &block(subject, kept(&old), program).map_err(|error| format!("`{subject}`: {error}"))?;
        text += &format!("{END}\n");
    }
    Ok(text)
}

/// The text of a block.
fn block(subject: &str, mut kept: Kept, program: &Command) -> Result<String, String> {
    let mut words = subject.split(' ');
    let kind = words.next().unwrap_or_default();
    let command = words.try_fold(program, |command, name| {
        command.find_subcommand(name).ok_or(format!("there is no command {name}"))
    })?;
    let text = match kind {
        "synopsis" => synopsis::of(program),
        "purpose" => entries::purpose(command),
        "options" => entries::options(command, &mut kept),
        "commands" => entries::commands(command, &mut kept),
        other => return Err(format!("unknown kind of block: {other}")),
    };
    match kept.keys().next() {
        Some(name) => Err(format!("{name} is gone: delete its entry, or move its text")),
        None => Ok(text),
    }
}

/// The text to keep of the entries of a block.
fn kept(old: &[&str]) -> Kept {
    let mut kept = Kept::new();
    for entry in old.join("\n").split(ENTRY).skip(1) {
        let name = entry.lines().next().unwrap_or_default().to_owned();
        if let Some((_, more)) = entry.split_once(&format!("{MORE}\n")) {
            kept.insert(name, more.trim_end().to_owned());
        }
    }
    kept
}

/// An entry: its comment, its generated text, and what is kept.
pub fn entry(name: &str, generated: &str, kept: &mut Kept) -> String {
    // After an indented list, the text goes on with the indentation of the entry.
    let indentation = if generated.ends_with(".RE\n") { ".IP\n" } else { "" };
    let more = kept.remove(name).map(|more| format!("{indentation}{MORE}\n{more}\n")).unwrap_or_default();
    format!("{ENTRY}{name}\n{generated}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn program() -> Command {
        let rate = Arg::new("rate").long("rate").value_name("N").help("Rate [default: 3]");
        let quiet = Arg::new("quiet").long("quiet").action(clap::ArgAction::SetTrue).help("Print nothing");
        Command::new("x").subcommand(Command::new("go").about("Goes away").arg(rate).arg(quiet))
    }

    fn page(block: &str) -> String {
        format!(".SH NAME\n.\\\" generated: options go\n{block}.\\\" end\n.SH END\n")
    }

    const RATE: &str = ".\\\" entry: --rate\n.TP\n.BI \\-\\-rate \" N\"\nRate.\nDefault: 3.\n";
    const QUIET: &str = ".\\\" entry: --quiet\n.TP\n.B \\-\\-quiet\nPrint nothing.\n";

    #[test]
    fn a_block_is_written_and_the_text_of_its_entries_is_kept() {
        let full = page(&format!("{RATE}{QUIET}"));
        assert_eq!(rewrite(&page(""), &program()).unwrap(), full);
        assert_eq!(rewrite(&full, &program()).unwrap(), full);
        let wordy = page(&format!("{RATE}.\\\" more\nBy hand.\n.PP\nMore of it.\n{QUIET}"));
        assert_eq!(rewrite(&wordy, &program()).unwrap(), wordy);
        // The order of the entries is that of --help.
        let turned = page(&format!("{QUIET}{RATE}.\\\" more\nBy hand.\n.PP\nMore of it.\n"));
        assert_eq!(rewrite(&turned, &program()).unwrap(), wordy);
    }

    #[test]
    fn text_about_an_option_that_is_gone_is_not_lost_silently() {
        let old = page(".\\\" entry: --gone\n.TP\n.B --gone\n.\\\" more\nBy hand.\n");
        assert_eq!(
            rewrite(&old, &program()).unwrap_err(),
            "`options go`: --gone is gone: delete its entry, or move its text"
        );
        let error = rewrite(".\\\" generated: options go\n", &program()).unwrap_err();
        assert!(error.contains("has no line"), "{error}");
        let error = rewrite(".\\\" generated: options come\n.\\\" end\n", &program()).unwrap_err();
        assert_eq!(error, "`options come`: there is no command come");
    }
}
