//! The blocks of a page: where they begin and end, what they are about, and the parts of the old block that are kept.

use crate::kept::Kept;
use crate::{entries, synopsis};
use clap::Command;

const BEGIN: &str = ".\\\" generated: ";
const END: &str = ".\\\" end";

/// Writes the generated blocks of a page anew.
///
/// # Errors
///
/// The block at fault: it has no end, is of an unknown kind, or has text about an option or a command that the program does not have.
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
        text += &block(subject, Kept::of(&old.join("\n")), program)
            .map_err(|error| format!("`{subject}`: {error}"))?;
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
    match kept.left() {
        Some(name) => Err(format!("{name} is gone: delete its entry, or move its text")),
        None => Ok(text),
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
