//! Names of devices for people: the product's name and its version number, without the rest of a version message.

use crate::run::Device;
use std::path::Path;

/// Products by the name of their template, in their makers' spelling.
const PRODUCTS: [(&str, &str); 7] = [
    ("sixfold", "Sixfold"),
    ("unbound", "Unbound"),
    ("bind", "BIND"),
    ("powerdns", "PowerDNS Recursor"),
    ("knot-resolver", "Knot Resolver"),
    ("coredns", "CoreDNS"),
    ("dnsproxy", "dnsproxy"),
];

/// Name of a device without a template.
const CUSTOM: &str = "custom";

impl Device {
    /// Product and version: `BIND 9.18.49-1~deb12u3-Debian`. A device without a template has the file name of its
    /// program, or its address.
    pub fn title(&self) -> String {
        let (product, version) = (self.product(), version_number(&self.version));
        match (&*product, &*version) {
            ("", "") => "The device".to_owned(),
            (product, "") => product.to_owned(),
            ("", version) => version.to_owned(),
            (product, version) => format!("{product} {version}"),
        }
    }

    /// The product without its version, as lower-case letters, digits and hyphens: `knot-resolver`, for labels.
    pub fn slug(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name = if self.is_custom() { self.product() } else { self.name.clone() };
        let words: String = name.chars().map(plain).collect();
        let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
        if words.is_empty() { "device".to_owned() } else { words.join("-") }
    }

    fn is_custom(&self) -> bool {
        self.name.trim() == CUSTOM
    }

    fn product(&self) -> String {
        let name = self.name.trim();
        let known = PRODUCTS.iter().find(|(template, _)| *template == name);
        let program = self.command.first().and_then(|program| Path::new(program).file_name());
        match (known, program) {
            (Some((_, product)), _) => (*product).to_owned(),
            (None, Some(program)) if self.is_custom() => program.to_string_lossy().into_owned(),
            (None, None) if self.is_custom() && !self.address.is_empty() => {
                format!("server at {}", self.address)
            }
            _ => name.to_owned(),
        }
    }
}

/// The version number of a version message, and the commit if there is one: `1.17.1` of `Version 1.17.1`. A message
/// without a number is kept without its parts in angle brackets.
fn version_number(message: &str) -> String {
    let (mut kept, mut rest) = (String::new(), message);
    // BIND ends its message with "<id:...>".
    while let Some((before, after)) = rest.split_once('<') {
        kept.push_str(before);
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let commit = kept.find("(commit ").and_then(|at| kept[at..].split_inclusive(')').next());
    let number = kept.split_whitespace().find_map(number_in);
    match (number, commit) {
        (Some(number), Some(commit)) => format!("{number} {commit}"),
        (Some(number), None) => number.to_owned(),
        (None, _) => kept.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// The version number in a word: `1.11.1` of `CoreDNS-1.11.1`, of `v1.11.1` and of `1.11.1,`.
fn number_in(word: &str) -> Option<&str> {
    let word = word.trim_end_matches([',', ';', '.']);
    let letters = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let number = letters.strip_prefix('-').unwrap_or(letters);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    // A word such as "bind9" is a name; a number behind letters needs a hyphen, or the letter v alone.
    let is_separate = letters.len() == word.len()
        || letters.starts_with('-')
        || letters.len() + 1 == word.len() && word.starts_with(['v', 'V']);
    (is_number && is_separate).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, version: &str) -> Device {
        Device { name: name.to_owned(), version: version.to_owned(), ..Device::default() }
    }

    #[test]
    fn version_messages_of_real_servers_become_product_and_number() {
        for (name, version, title) in [
            ("unbound", "Version 1.17.1", "Unbound 1.17.1"),
            (
                "bind",
                "BIND 9.18.49-1~deb12u3-Debian (Extended Support Version) <id:>",
                "BIND 9.18.49-1~deb12u3-Debian",
            ),
            ("bind", "BIND 9.20.0 (Stable Release) <id:4f2a>", "BIND 9.20.0"),
            ("powerdns", "PowerDNS Recursor 4.8.8 (C) 2001-2022 PowerDNS.COM BV", "PowerDNS Recursor 4.8.8"),
            ("knot-resolver", "Knot Resolver, version 5.6.0", "Knot Resolver 5.6.0"),
            ("coredns", "CoreDNS-1.11.1", "CoreDNS 1.11.1"),
            ("dnsproxy", "dnsproxy version: v0.65.2", "dnsproxy 0.65.2"),
            ("sixfold", "sixfold 0.1.0 (commit a8f7cd03550b)", "Sixfold 0.1.0 (commit a8f7cd03550b)"),
            ("unbound", "", "Unbound"),
            ("unbound", "<id:1", "Unbound"),
            ("bind9", "unstable <x>", "bind9 unstable"),
            ("", "", "The device"),
        ] {
            assert_eq!(device(name, version).title(), title);
        }
    }

    #[test]
    fn a_device_without_a_template_has_the_name_of_its_program_or_its_address() {
        let command = vec!["/usr/local/bin/My_DNS64".to_owned(), "--listen".to_owned()];
        let started = Device { command, ..device("custom", "") };
        assert_eq!((started.title(), started.slug()), ("My_DNS64".to_owned(), "my-dns64".to_owned()));
        let running = Device { address: "[2001:2::53]:53".to_owned(), ..device("custom", "") };
        assert_eq!(running.title(), "server at [2001:2::53]:53");
        assert_eq!(running.slug(), "server-at-2001-2-53-53");
        assert_eq!(device("knot-resolver", "Knot Resolver, version 5.6.0").slug(), "knot-resolver");
        assert_eq!(device("}\\input{x}", "").slug(), "input-x");
        assert_eq!(device("", "").slug(), "device");
    }
}
