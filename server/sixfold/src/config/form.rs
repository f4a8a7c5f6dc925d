//! Forms of values: how the value of a key is read, printed and described. A key of the table in `keys.rs` has one of them, or one of those
//! in `values.rs` that only one key has.

use super::address::{Network, endpoint};
use super::report::{Fault, Item};
use super::table::Entry;
use super::units;
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The form of a key's value.
pub trait Form<T> {
    /// The value in the manual: words in quotation marks, and names of what stands in their place, with ` | ` between.
    fn shape(&self) -> String;

    /// The smallest and the largest value, as they are written.
    fn bounds(&self) -> Option<[String; 2]> {
        None
    }

    /// Reads the value. None: it has a fault, which was reported, or leaves the default in place.
    fn read(&self, entry: Entry<'_>) -> Option<T>;

    /// The value as TOML.
    fn print(&self, value: &T) -> String;

    /// The line of the key, or a comment, or nothing, in the effective configuration.
    fn line(&self, key: &str, value: &T) -> String {
        format!("{key} = {}\n", self.print(value))
    }
}

/// A whole number.
pub struct Number(pub RangeInclusive<u64>);

impl<T: TryFrom<u64> + Display> Form<T> for Number {
    fn shape(&self) -> String {
        "number".to_owned()
    }

    fn bounds(&self) -> Option<[String; 2]> {
        Some([self.0.start().to_string(), self.0.end().to_string()])
    }

    fn read(&self, entry: Entry<'_>) -> Option<T> {
        entry.integer(self.0.clone()).and_then(|value| T::try_from(value).ok())
    }

    fn print(&self, value: &T) -> String {
        value.to_string()
    }
}

/// `true` or `false`.
pub struct Boolean;

impl Form<bool> for Boolean {
    fn shape(&self) -> String {
        "boolean".to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<bool> {
        entry.boolean()
    }

    fn print(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// One of several words.
pub struct Words<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Form<T> for Words<T> {
    fn shape(&self) -> String {
        self.0.iter().map(|(word, _)| text(word)).collect::<Vec<_>>().join(" | ")
    }

    fn read(&self, entry: Entry<'_>) -> Option<T> {
        entry.choice(self.0)
    }

    fn print(&self, value: &T) -> String {
        text(self.0.iter().find(|(_, meant)| meant == value).map_or("", |(word, _)| word))
    }
}

/// A duration with its unit, and an example of one.
pub struct Time(pub RangeInclusive<Duration>, pub &'static str);

impl Form<Duration> for Time {
    fn shape(&self) -> String {
        "duration".to_owned()
    }

    fn bounds(&self) -> Option<[String; 2]> {
        Some([self.0.start(), self.0.end()].map(|&bound| text(units::show_duration(bound))))
    }

    fn read(&self, entry: Entry<'_>) -> Option<Duration> {
        let kind = format!("a duration like \"{}\"", self.1);
        let item = entry.parse(&kind, |text| units::duration(text, self.0.clone()));
        item.map(|item| item.value)
    }

    fn print(&self, value: &Duration) -> String {
        text(units::show_duration(*value))
    }
}

/// A string with a meaning.
pub struct Text<T: 'static> {
    /// Name of the value in the manual.
    pub shape: &'static str,
    /// Description of the value, for an error about another type.
    pub kind: &'static str,
    /// Reads the string.
    pub parse: fn(&str) -> Result<T, Fault>,
    /// Writes it.
    pub show: fn(&T) -> String,
}

impl<T> Form<T> for Text<T> {
    fn shape(&self) -> String {
        self.shape.to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<T> {
        entry.parse(self.kind, self.parse).map(|item| item.value)
    }

    fn print(&self, value: &T) -> String {
        text((self.show)(value))
    }
}

/// The same, where an empty string turns something off.
impl<T> Form<Option<T>> for Text<T> {
    fn shape(&self) -> String {
        self.shape.to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Option<T>> {
        let parse = |text: &str| if text.is_empty() { Ok(None) } else { (self.parse)(text).map(Some) };
        entry.parse(self.kind, parse).map(|item| item.value)
    }

    fn print(&self, value: &Option<T>) -> String {
        text(value.as_ref().map(self.show).unwrap_or_default())
    }
}

/// A path of a file.
pub const FILE: Text<PathBuf> =
    Text { shape: "file", kind: "a path", parse: |text| Ok(PathBuf::from(text)), show: |path| shown(path) };

/// A path as text.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A list of strings.
pub struct List<T: 'static> {
    /// Name of the items in the manual.
    pub shape: &'static str,
    /// Description of an item, for an error about another type.
    pub kind: &'static str,
    /// Reads an item.
    pub parse: fn(&str) -> Result<T, Fault>,
    /// Writes it.
    pub show: fn(&T) -> String,
    /// Number of items that are allowed, their name, and the remedy for more.
    pub most: Option<(usize, &'static str, &'static str)>,
    /// The remedy for an empty list, if that is an error. A list that is absent is empty then.
    pub empty: Option<&'static str>,
    /// Name of an item, and the remedy for one that stands twice, if that is an error.
    pub twice: Option<(&'static str, &'static str)>,
}

impl<T> List<T> {
    /// A list of any length.
    pub const fn of(
        shape: &'static str,
        kind: &'static str,
        parse: fn(&str) -> Result<T, Fault>,
        show: fn(&T) -> String,
    ) -> List<T> {
        List { shape, kind, parse, show, most: None, empty: None, twice: None }
    }
}

impl<T: PartialEq> Form<Vec<T>> for List<T> {
    fn shape(&self) -> String {
        self.shape.to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Vec<T>> {
        if let Some(help) = self.empty {
            entry.refuse_empty(help);
        }
        let (problems, path) = (entry.problems(), entry.path.clone());
        entry.values(self.kind, self.parse, |items: &[Item<T>]| {
            if let Some((most, name, help)) = self.most
                && let Some(item) = items.get(most)
            {
                let what = format!("`{path}` has more than {most} {name}");
                problems.add(&item.place, Fault::new(what, help));
            }
            if let Some((name, help)) = self.twice {
                problems.refuse_twice(items, name, self.show, help);
            }
        })
    }

    fn print(&self, value: &Vec<T>) -> String {
        list(value.iter().map(self.show))
    }

    fn line(&self, key: &str, value: &Vec<T>) -> String {
        match self.empty.is_some() && value.is_empty() {
            true => String::new(),
            false => format!("{key} = {}\n", self.print(value)),
        }
    }
}

/// Addresses to listen on.
pub struct Addresses {
    /// The port of an address without one.
    pub port: u16,
    /// The remedy for an empty list, if that is an error.
    pub empty: Option<&'static str>,
}

impl Form<Vec<SocketAddr>> for Addresses {
    fn shape(&self) -> String {
        "addresses".to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Vec<SocketAddr>> {
        if let Some(help) = self.empty {
            entry.refuse_empty(help);
        }
        entry.addresses(|text| endpoint(text, self.port))
    }

    fn print(&self, value: &Vec<SocketAddr>) -> String {
        list(value)
    }
}

/// Form of lists of networks: each query is compared with them, so their number is limited.
pub const fn networks(parse: fn(&str) -> Result<Network, Fault>) -> List<Network> {
    List {
        most: super::limits::MOST_NETWORKS,
        ..List::of("networks", "a network", parse, |network| network.to_string())
    }
}

/// A TOML list of strings.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    format!("[{}]", items.into_iter().map(text).collect::<Vec<_>>().join(", "))
}

/// A TOML basic string: quotation marks, backslashes and control characters are escaped.
pub fn text(value: impl Display) -> String {
    let mut quoted = String::from("\"");
    for character in value.to_string().chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            // Writing to a string cannot fail.
            other if other.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(other)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
