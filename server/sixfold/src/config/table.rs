//! Reader of one TOML table, key by key. It remembers which keys were read: the keys that are left over are unknown, and
//! errors. Every method reports an error and goes on, so that one run finds all errors.

use super::address_syntax::forgotten_brackets;
use super::report::{Fault, Item, Place, Problems, quoted};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Description of an address, for error messages.
const ADDRESS: &str = "an address with or without a port";

/// Table that is being read.
pub struct Table<'t> {
    /// Its name with dots, like `dns64.on-failure`; empty for the whole file.
    path: String,
    /// The same, for one of several tables with its number, like `upstream.zone[2]`: under this name the places of its values are noted.
    pub slot: String,
    /// The place of its beginning.
    pub place: Place,
    entries: Option<&'t DeTable<'t>>,
    known: Vec<&'static str>,
    problems: &'t Problems,
}

/// Key with its value, whose type is not checked yet.
pub struct Entry<'t> {
    /// The name of the key with dots, like `upstream.timeout`.
    pub path: String,
    /// The place of the value.
    pub place: Place,
    slot: String,
    value: &'t DeValue<'t>,
    problems: &'t Problems,
}

impl<'t> Table<'t> {
    /// The table that is the whole file.
    pub fn root(entries: &'t DeTable<'t>, problems: &'t Problems) -> Table<'t> {
        Table {
            path: String::new(),
            slot: String::new(),
            place: Place::File(0..0),
            entries: Some(entries),
            known: Vec::new(),
            problems,
        }
    }

    /// True if `key` is set.
    pub fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.get(key).is_some())
    }

    /// The entry of `key`, if it is set.
    pub fn get(&mut self, key: &'static str) -> Option<Entry<'t>> {
        self.known.push(key);
        let value = self.entries?.get(key)?;
        let (slot, place) = (join(&self.slot, key), place(value));
        self.problems.note(&slot, place.clone(), Vec::new());
        Some(Entry {
            path: join(&self.path, key),
            place,
            slot,
            value: value.get_ref(),
            problems: self.problems,
        })
    }

    /// Reads a table below this one. An absent table counts as an empty one.
    pub fn table(&mut self, key: &'static str) -> Table<'t> {
        let path = join(&self.path, key);
        let (mut place, mut entries) = (Place::Default, None);
        if let Some(entry) = self.get(key) {
            match entry.value.as_table() {
                Some(found) => (place, entries) = (entry.place, Some(found)),
                None => _ = entry.wrong_type::<()>("a table", &format!("write its keys below [{path}]")),
            }
        }
        Table { slot: path.clone(), path, place, entries, known: Vec::new(), problems: self.problems }
    }

    /// Reads the tables of an array of tables.
    pub fn tables(&mut self, key: &'static str) -> Vec<Table<'t>> {
        let path = join(&self.path, key);
        let help = format!("write its keys below [[{path}]], once for each");
        let Some(entry) = self.get(key) else { return Vec::new() };
        let Some(array) = entry.value.as_array() else {
            entry.wrong_type::<()>("an array of tables", &help);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for value in array.iter() {
            let (path, slot) = (path.clone(), format!("{path}[{}]", tables.len()));
            let element =
                Entry { value: value.get_ref(), place: place(value), path, slot, problems: entry.problems };
            match element.value.as_table() {
                Some(entries) => tables.push(Table {
                    path: element.path,
                    slot: element.slot,
                    place: element.place,
                    entries: Some(entries),
                    known: Vec::new(),
                    problems: self.problems,
                }),
                None => _ = element.wrong_type::<()>("a table", &help),
            }
        }
        tables
    }

    /// Reports every key that was not read.
    pub fn finish(self) {
        let Some(entries) = self.entries else { return };
        let table =
            if self.path.is_empty() { "a table of this file".into() } else { format!("[{}]", self.path) };
        for (key, value) in entries.iter() {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            let thing = if value.get_ref().is_table() { "table" } else { "key" };
            let known = self.known.join(", ");
            let help = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.path.is_empty() => format!("the tables are {known}"),
                None => format!("the keys of {table} are {known}"),
            };
            let what = if self.path.is_empty() {
                format!("unknown {thing} {}", quoted(name))
            } else {
                format!("unknown {thing} {} in {table}", quoted(name))
            };
            self.problems.add(&Place::File(key.span()), Fault::new(what, help));
        }
    }
}

impl<'t> Entry<'t> {
    /// The value as text; none, without a report, when it is of another type.
    pub fn as_str(&self) -> Option<&'t str> {
        self.value.as_str()
    }

    /// Reports a fault of the value.
    pub fn refuse(&self, fault: Fault) {
        self.problems.add(&self.place, fault);
    }

    /// Reports a list that is empty and must not be.
    pub fn refuse_empty(&self, help: &str) {
        if self.value.as_array().is_some_and(|array| array.is_empty()) {
            self.refuse(Fault::new(format!("`{}` is empty", self.path), help));
        }
    }

    /// Reports that the value must be `kind`.
    pub fn wrong_type<T>(&self, kind: &str, help: &str) -> Option<T> {
        let article = if self.value.type_str().starts_with(['a', 'i']) { "an" } else { "a" };
        let what = format!("`{}` is {article} {}, but must be {kind}", self.path, self.value.type_str());
        self.refuse(Fault::new(what, help));
        None
    }

    /// Reads `true` or `false`.
    pub fn boolean(self) -> Option<bool> {
        let help = "write true or false, without quotation marks";
        self.value.as_bool().or_else(|| self.wrong_type("true or false", help))
    }

    /// Reads one of several words.
    pub fn choice<T: Copy>(self, words: &[(&str, T)]) -> Option<T> {
        let allowed = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ");
        let path = self.path.clone();
        let value = self.parse(&allowed, |text| {
            words.iter().find(|(word, _)| *word == text).map(|&(_, value)| value).ok_or_else(|| {
                let mut help = format!("write {allowed}");
                if let Some(near) = nearest(text, words.iter().map(|&(word, _)| word)) {
                    help = format!("did you mean \"{near}\"? Allowed values: {allowed}");
                }
                Fault::new(format!("{} is not a value of `{path}`", quoted(text)), help)
            })
        });
        value.map(|item| item.value)
    }

    /// Reads an address or the like, and warns of one whose brackets are probably forgotten.
    pub fn address<T>(self, parse: impl Fn(&str) -> Result<T, Fault>) -> Option<T> {
        let problems = self.problems;
        let parse = |text: &str| {
            problems.warn(forgotten_brackets(text));
            parse(text)
        };
        self.parse(ADDRESS, parse).map(|item| item.value)
    }

    /// Reads a list of addresses like [`Entry::address`].
    pub fn addresses<T>(self, parse: impl Fn(&str) -> Result<T, Fault>) -> Option<Vec<T>> {
        let problems = self.problems;
        let parse = |text: &str| {
            problems.warn(forgotten_brackets(text));
            parse(text)
        };
        self.values(ADDRESS, parse, |_| {})
    }

    /// Reads a list of strings, parses each, lets `check` see them with their places, and notes these.
    pub fn values<T>(
        self,
        kind: &str,
        parse: impl Fn(&str) -> Result<T, Fault>,
        check: impl FnOnce(&[Item<T>]),
    ) -> Option<Vec<T>> {
        let (problems, slot, place) = (self.problems, self.slot.clone(), self.place.clone());
        let items = self.list(kind, parse)?;
        check(&items);
        let (values, places) = items.into_iter().map(|item| (item.value, item.place)).unzip();
        problems.note(&slot, place, places);
        Some(values)
    }

    /// The problems of the file.
    pub fn problems(&self) -> &'t Problems {
        self.problems
    }

    /// Reads a string and parses it.
    pub fn parse<T>(self, kind: &str, parse: impl Fn(&str) -> Result<T, Fault>) -> Option<Item<T>> {
        let Some(text) = self.value.as_str() else {
            return self.wrong_type(kind, &format!("write {kind}, between quotation marks"));
        };
        let value = self.problems.check(&self.place, parse(text))?;
        Some(Item { value, place: self.place })
    }

    /// Reads a list of strings and parses each. Strings with an error are reported and left out.
    fn list<T>(self, kind: &str, parse: impl Fn(&str) -> Result<T, Fault>) -> Option<Vec<Item<T>>> {
        let help = format!("write [\"...\"] with {kind} between each pair of quotation marks");
        let elements = self.elements(&format!("strings, each {kind}"), &help)?;
        Some(elements.into_iter().filter_map(|element| element.parse(kind, &parse)).collect())
    }

    /// Reads a list, whose elements may be of any type. `kind` names them in the error for another type.
    pub fn elements(self, kind: &str, help: &str) -> Option<Vec<Entry<'t>>> {
        let Some(array) = self.value.as_array() else {
            return self.wrong_type(&format!("a list of {kind}"), help);
        };
        let element = |value: &'t Spanned<DeValue<'t>>| Entry {
            path: format!("{}[]", self.path),
            place: place(value),
            slot: String::new(),
            value: value.get_ref(),
            problems: self.problems,
        };
        Some(array.iter().map(element).collect())
    }

    /// Reads a whole number.
    pub fn integer(self, range: RangeInclusive<u64>) -> Option<u64> {
        let (low, high) = (range.start(), range.end());
        let help = format!("write a whole number from {low} to {high}, without quotation marks");
        let Some(digits) = self.value.as_integer() else {
            return self.wrong_type("a whole number", &help);
        };
        let number = i128::from_str_radix(digits.as_str(), digits.radix()).ok();
        match number.and_then(|number| u64::try_from(number).ok()).filter(|number| range.contains(number)) {
            Some(value) => Some(value),
            None => {
                self.refuse(Fault::new(
                    format!("`{}` is out of range: {}", self.path, digits.as_str()),
                    help,
                ));
                None
            }
        }
    }
}

fn place(value: &Spanned<DeValue<'_>>) -> Place {
    Place::File(value.span())
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The known word that was probably intended: the nearest one, if at most a third of it differs.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are not typing errors; this limits the work.
    let folded = Some(word).filter(|word| word.len() <= 64)?.to_ascii_lowercase().replace('_', "-");
    known
        .map(|candidate| (strsim::osa_distance(&folded, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= (candidate.len() / 3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_the_intended_word() {
        let known = ["listen", "workers", "tcp-fast-open", "dns64"];
        let intended = |word| nearest(word, known.into_iter());
        assert_eq!(intended("lisen"), Some("listen"));
        assert_eq!(intended("worker"), Some("workers"));
        assert_eq!(intended("dns46"), Some("dns64"));
        assert_eq!(intended("TCP_FAST_OPEN"), Some("tcp-fast-open"));
        assert_eq!(intended("no-such-option"), None);
        assert_eq!(intended("lisetn"), Some("listen"));
        assert_eq!(intended(&"listen".repeat(1000)), None);
    }
}
