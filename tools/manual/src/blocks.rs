//! The blocks of a page: where they begin and end, what they are about, and the parts of the old block that are kept.

use crate::kept::Kept;
use crate::{entries, keys, synopsis};
use clap::Command;

const BEGIN: &str = ".\\\" generated: ";
const END: &str = ".\\\" end";

/// Writes the generated blocks of a page anew. `program`: the program that the page is about, if it is about one.
///
/// # Errors
///
/// The block at fault: it has no end, is of an unknown kind, or has text about an option or a command that the program does not have.
pub fn rewrite(page: &str, program: Option<&Command>) -> Result<String, String> {
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
        text += &block(subject, Kept::of(&old.join("\n")), program)
            .map_err(|error| format!("`{subject}`: {error}"))?;
        text += &format!("{END}\n");
    }
    Ok(text)
}

/// The text of a block.
fn block(subject: &str, mut kept: Kept, program: Option<&Command>) -> Result<String, String> {
    let (kind, of) = subject.split_once(' ').unwrap_or((subject, ""));
    let text = match (kind, program) {
        ("keys", _) => keys::of(of, &mut kept)?,
        (_, Some(program)) => about_commands(kind, of, &mut kept, program)?,
        (other, None) => return Err(format!("unknown kind of block on a page about no program: {other}")),
    };
    match kept.left() {
        Some(name) => Err(format!("{name} is gone: delete its entry, or move its text")),
        None => Ok(text),
    }
}

fn about_commands(kind: &str, of: &str, kept: &mut Kept, program: &Command) -> Result<String, String> {
    let command = of.split_whitespace().try_fold(program, |command, name| {
        command.find_subcommand(name).ok_or(format!("there is no command {name}"))
    })?;
    match kind {
        "synopsis" => Ok(synopsis::of(program)),
        "purpose" => Ok(entries::purpose(command)),
        "options" => Ok(entries::options(command, kept)),
        "commands" => Ok(entries::commands(command, kept)),
        other => Err(format!("unknown kind of block: {other}")),
    }
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
        assert_eq!(rewrite(&page(""), Some(&program())).unwrap(), full);
        assert_eq!(rewrite(&full, Some(&program())).unwrap(), full);
        let wordy = page(&format!("{RATE}.\\\" more\nBy hand.\n.PP\nMore of it.\n{QUIET}"));
        assert_eq!(rewrite(&wordy, Some(&program())).unwrap(), wordy);
        // The order of the entries is that of --help.
        let turned = page(&format!("{QUIET}{RATE}.\\\" more\nBy hand.\n.PP\nMore of it.\n"));
        assert_eq!(rewrite(&turned, Some(&program())).unwrap(), wordy);
    }

    #[test]
    fn text_about_an_option_that_is_gone_is_not_lost_silently() {
        let old = page(".\\\" entry: --gone\n.TP\n.B --gone\n.\\\" more\nBy hand.\n");
        assert_eq!(
            rewrite(&old, Some(&program())).unwrap_err(),
            "`options go`: --gone is gone: delete its entry, or move its text"
        );
        let error = rewrite(".\\\" generated: options go\n", Some(&program())).unwrap_err();
        assert!(error.contains("has no line"), "{error}");
        let error = rewrite(".\\\" generated: options come\n.\\\" end\n", Some(&program())).unwrap_err();
        assert_eq!(error, "`options come`: there is no command come");
    }
}
