//! Options and commands as tagged paragraphs.

use crate::kept::Kept;
use crate::roff::{self, escape};
use clap::{Arg, Command};

/// The purpose of a command, as below its name in `--help`.
pub fn purpose(command: &Command) -> String {
    format!("{}\n", roff::sentence(&command.get_about().map(ToString::to_string).unwrap_or_default()))
}

/// The options and arguments of a command, in the order of `--help`.
pub fn options(command: &Command, kept: &mut Kept) -> String {
    visible(command).map(|option| kept.entry(&name(option), &paragraph(option))).collect()
}

/// The commands of a command, each with its purpose and the options that it alone has.
pub fn commands(command: &Command, kept: &mut Kept) -> String {
    let all = command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    all.map(|one| {
        let own: Vec<&Arg> = visible(one).filter(|option| !option.is_global_set()).collect();
        let list: String = own.iter().map(|option| paragraph(option)).collect();
        let list = if list.is_empty() { list } else { format!(".RS\n{list}.RE\n") };
        let form: Vec<String> = own.iter().map(|option| form(option)).collect();
        let tag = match form.is_empty() {
            true => format!(".B {}\n", escape(one.get_name())),
            false => format!(".BR {} \" {}\"\n", escape(one.get_name()), form.join(" ")),
        };
        kept.entry(one.get_name(), &format!(".TP\n{tag}{}{list}", purpose(one)))
    })
    .collect()
}

/// The options and arguments that `--help` shows, without `--help` itself.
pub fn visible(command: &Command) -> impl Iterator<Item = &Arg> {
    let shown =
        |option: &&Arg| !option.is_hide_set() && !matches!(option.get_id().as_str(), "help" | "version");
    command.get_arguments().filter(shown)
}

/// An option as a synopsis shows it: in brackets unless it is required.
pub fn form(option: &Arg) -> String {
    let (values, dots) = (values(option), if is_repeated(option) { "\\|.\\|.\\|." } else { "" });
    let inner = match option.get_long() {
        Some(long) if values.is_empty() => format!("\\fB\\-\\-{}\\fR", escape(long)),
        Some(long) => format!("\\fB\\-\\-{}\\fR \\fI{}\\fR", escape(long), escape(&values)),
        None => format!("\\fI{}\\fR", escape(&values)),
    };
    if option.is_required_set() { format!("{inner}{dots}") } else { format!("[{inner}]{dots}") }
}

fn name(option: &Arg) -> String {
    option.get_long().map_or_else(|| values(option), |long| format!("--{long}"))
}

fn is_repeated(option: &Arg) -> bool {
    matches!(option.get_action(), clap::ArgAction::Append)
}

/// The names of an option's values; empty for a switch.
fn values(option: &Arg) -> String {
    let names = option.get_value_names().unwrap_or_default();
    let takes = option.get_action().takes_values();
    if takes { names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ") } else { String::new() }
}

/// The tagged paragraph of an option: its forms, its help, its values and its default.
fn paragraph(option: &Arg) -> String {
    let values = values(option);
    let longs = option.get_long_and_visible_aliases().unwrap_or_default();
    let longs: Vec<String> = longs.iter().map(|long| format!("\\-\\-{}", escape(long))).collect();
    let tag = match (&longs[..], values.is_empty()) {
        ([], _) => format!(".I {}\n", escape(&values)),
        ([long], true) => format!(".B {long}\n"),
        ([long], false) => format!(".BI {long} \" {}\"\n", escape(&values)),
        (several, _) => format!(".BI \"{}\" \" {}\"\n", several.join(", "), escape(&values)),
    };
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let mut text = format!(".TP\n{tag}{}", roff::help(&help));
    let possible = option.get_possible_values();
    let shown: Vec<_> = possible.iter().filter(|value| !value.is_hide_set()).collect();
    if !values.is_empty() && !option.is_hide_possible_values_set() && !shown.is_empty() {
        let words: Vec<String> =
            shown.iter().map(|value| format!("\\fB{}\\fR", escape(value.get_name()))).collect();
        text += &format!("Values: {}.\n", words.join(", "));
    }
    let defaults: Vec<String> =
        option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if option.is_required_set() && !option.is_positional() {
        text += "Required.\n";
    }
    if !values.is_empty() && !defaults.is_empty() && !option.is_hide_default_value_set() {
        text += &roff::default(&defaults.join(" "));
    }
    text
}
