//! Hosts and configurations of runs as Markdown and LaTeX, for the appendix of a paper.

use crate::escape;
use crate::named::{Named, grouped};
use crate::put;
use crate::table::Table;
use crate::text_list::and;
use measure::compare::is_volatile;
use measure::run::Run;
use std::collections::BTreeMap;

/// A host, with the roles that it had.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// The roles, in the order of a query's path.
    pub roles: Vec<&'a str>,
    /// Its name; empty if it is not recorded.
    pub name: &'a str,
    /// The facts of all these roles.
    pub facts: BTreeMap<&'a str, &'a str>,
}

impl Host<'_> {
    /// The host as a heading has it: `laboratory (tester, device and authority)`.
    pub fn title(&self) -> String {
        match self.name {
            "" => format!("of {}", and(&self.roles)),
            name => format!("{name} ({})", and(&self.roles)),
        }
    }
}

/// The hosts of a run. Roles on hosts of one name share a host.
pub fn hosts(run: &Run) -> Vec<Host<'_>> {
    let mut hosts: Vec<Host> = Vec::new();
    for role in ["tester", "device", "authority"] {
        let Some(host) = run.hosts.get(role) else { continue };
        let facts = || host.facts.iter().map(|(name, value)| (&**name, &**value));
        let name = host.facts.get("hostname").map_or("", String::as_str);
        match hosts.iter_mut().find(|other| !name.is_empty() && other.name == name) {
            Some(known) => {
                known.roles.push(role);
                facts().for_each(|(name, value)| _ = known.facts.entry(name).or_insert(value));
            }
            None => hosts.push(Host { roles: vec![role], name, facts: facts().collect() }),
        }
    }
    hosts
}

/// The lasting facts of a host: those that differ from minute to minute are left out.
fn lasting<'a>(host: &'a Host) -> impl Iterator<Item = (&'a str, &'a str)> {
    let facts = host.facts.iter().map(|(name, value)| (*name, *value));
    facts.filter(|(name, _)| !is_volatile(name) && *name != "hostname")
}

/// Hosts and configurations as Markdown.
pub fn markdown(runs: &[Named]) -> String {
    let mut out = String::new();
    for (names, block) in grouped(runs, |run| hosts(run).iter().map(host_markdown).collect()) {
        if !block.is_empty() {
            put!(out, "### Hosts{}\n\n{block}", escape::markdown(&of(runs, &names)));
        }
    }
    for (names, block) in grouped(runs, configuration_markdown) {
        if !block.is_empty() {
            put!(out, "### Configuration of {}\n\n{block}", escape::markdown(&and(&names)));
        }
    }
    out
}

/// Hosts and configurations as LaTeX.
pub fn latex(runs: &[Named]) -> String {
    let mut out = String::new();
    for (names, block) in grouped(runs, |run| hosts(run).iter().map(host_latex).collect()) {
        if !block.is_empty() {
            put!(out, "\n\\subsection*{{Hosts{}}}\n{block}", escape::latex(&of(runs, &names)));
        }
    }
    for (names, block) in grouped(runs, configuration_latex) {
        if !block.is_empty() {
            put!(out, "\n\\subsection*{{Configuration of {}}}\n{block}", escape::latex(&and(&names)));
        }
    }
    out
}

/// The names of the runs behind a heading, unless all runs share what follows.
fn of(runs: &[Named], names: &[&str]) -> String {
    if names.len() == runs.len() { String::new() } else { format!(" of {}", and(names)) }
}

fn host_markdown(host: &Host) -> String {
    let mut table = Table::new(format!("Host {}", host.title()), 2, &["Fact", "Value"]);
    lasting(host).for_each(|(name, value)| table.row([name, value]));
    table.markdown() + "\n"
}

fn host_latex(host: &Host) -> String {
    let mut out = format!("\\paragraph{{Host {}.}}\n", escape::latex(&host.title()));
    if lasting(host).next().is_some() {
        out.push_str("\\begin{description}\n");
        for (name, value) in lasting(host) {
            put!(out, "  \\item[{}] {}\n", escape::latex(name), escape::latex(value));
        }
        out.push_str("\\end{description}\n");
    }
    out
}

fn configuration_markdown(run: &Run) -> String {
    let mut out = String::new();
    for (name, text) in &run.device.files {
        // A fence is longer than any row of backticks in the text.
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        put!(out, "{}:\n\n{fence}\n{}\n{fence}\n\n", escape::markdown(name), plain(text).trim_end());
    }
    out
}

fn configuration_latex(run: &Run) -> String {
    let mut out = String::new();
    for (name, text) in &run.device.files {
        // Only this sequence ends the environment.
        let text = plain(text).replace("\\end{verbatim}", "\\end {verbatim}");
        put!(
            out,
            "\\paragraph{{{}}}\n\\begin{{verbatim}}\n{}\n\\end{{verbatim}}\n",
            escape::latex(name),
            text.trim_end()
        );
    }
    out
}

/// The text without control characters other than line ends.
fn plain(text: &str) -> String {
    text.replace('\t', "    ").replace("\r\n", "\n").replace(|c: char| c.is_control() && c != '\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::named;
    use crate::sample::{self, Shape};

    #[test]
    fn hardware_kernel_and_configuration_are_in_both_formats() {
        let mut run = sample::run(&Shape::quick());
        let facts = &mut run.hosts.get_mut("device").unwrap().facts;
        facts.insert("load average".to_owned(), "0.58 0.40 0.30".to_owned());
        facts.insert("interface to 2001:2::1".to_owned(), "eth0, driver ixgbe, MTU 1500".to_owned());
        run.device.files.insert("b.conf".to_owned(), "a\n```\n\\end{verbatim}\\input{x}\n".to_owned());
        let runs = [("a", &run)];
        for text in [markdown(&named(&runs)), latex(&named(&runs))] {
            for part in
                ["laboratory (tester, device and authority)", "6.12.0", "ixgbe", "dns64", "unbound.conf"]
            {
                assert!(text.contains(part), "{part}\n{text}");
            }
            assert!(!text.contains("0.58"), "the load of a moment is no fact of the hardware");
        }
        assert!(markdown(&named(&runs)).contains("\n````\na\n```\n"), "the fence holds");
        let text = latex(&named(&runs));
        assert_eq!(text.matches("\\begin{verbatim}").count(), 2);
        assert_eq!(text.matches("\\end{verbatim}").count(), 2, "{text}");
    }

    #[test]
    fn hosts_that_all_runs_share_appear_once() {
        let one = sample::run(&Shape::quick());
        let mut other = one.clone();
        other.device.name = "bind".to_owned();
        let text = markdown(&named(&[("a", &one), ("b", &other)]));
        assert_eq!(
            (text.matches("### Hosts").count(), text.matches("### Configuration").count()),
            (1, 1),
            "{text}"
        );
        other.hosts.get_mut("tester").unwrap().facts.insert("kernel".to_owned(), "6.13.0".to_owned());
        let text = markdown(&named(&[("a", &one), ("b", &other)]));
        assert!(text.contains("### Hosts of Unbound 1.22.0\n"), "{text}");
    }
}
