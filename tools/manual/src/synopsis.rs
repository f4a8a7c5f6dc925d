//! The synopsis of a program: a line for each command.

use crate::entries::{form, visible};
use crate::roff::escape;
use clap::{Arg, Command};

/// Options that a line shows; a command with more has `[OPTIONS]` in their place.
const OPTIONS: usize = 8;

/// The synopsis.
pub fn of(program: &Command) -> String {
    let name = escape(program.get_name());
    let commands = program.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let lines: Vec<String> = commands
        .map(|command| format!(".B {name} {}\n{}", escape(command.get_name()), parts(command)))
        .chain([format!(".B {name}\n.RB {{ \\-\\-help \" | \" \\-\\-version }}\n")])
        .collect();
    lines.join(".PP\n")
}

/// Options and arguments of a command, one a line: arguments that exclude each other, options, arguments, commands.
fn parts(command: &Command) -> String {
    let group = command.get_groups().find(|group| group.is_required_set());
    let in_group =
        |option: &&Arg| group.is_some_and(|group| group.get_args().any(|id| id == option.get_id()));
    let mut parts: Vec<String> = Vec::new();
    let alternatives: Vec<String> =
        visible(command).filter(in_group).map(|option| form(&option.clone().required(true))).collect();
    if !alternatives.is_empty() {
        parts.push(format!("{{{}}}", alternatives.join(" | ")));
    }
    let (arguments, options): (Vec<&Arg>, Vec<&Arg>) =
        visible(command).filter(|option| !in_group(option)).partition(|option| option.is_positional());
    let (required, optional): (Vec<&Arg>, Vec<&Arg>) =
        options.into_iter().partition(|option| option.is_required_set());
    parts.extend(required.into_iter().map(form));
    if optional.len() > OPTIONS {
        parts.push("[\\fIOPTIONS\\fR]".to_owned());
    } else {
        parts.extend(optional.into_iter().map(form));
    }
    parts.extend(arguments.into_iter().map(form));
    if command.get_subcommands().any(|one| !one.is_hide_set()) {
        parts.push("\\fICOMMAND\\fR".to_owned());
    }
    parts.iter().map(|part| format!("{part}\n")).collect()
}
