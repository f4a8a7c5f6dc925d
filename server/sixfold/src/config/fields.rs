//! Readers for fields that several tables have. They know the table reader and the error report, and no draft.

use super::address::{Family, Network, endpoint, network};
use super::limits;
use super::notation::forgotten_brackets;
use super::report::{Fault, Item, Problems};
use super::table::Table;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Description of an address, for error messages.
pub const ADDRESS: &str = "an address with or without a port";

/// Overwrites a default with a value that was read, if there is one.
pub fn set<T>(field: &mut T, item: Option<Item<T>>) {
    if let Some(item) = item {
        *field = item.value;
    }
}

/// Like [`set`], for numbers whose range fits the type of the field.
pub fn set_number<T: TryFrom<u64>>(field: &mut T, item: Option<Item<u64>>) {
    if let Some(Ok(value)) = item.map(|item| T::try_from(item.value)) {
        *field = value;
    }
}

/// Reads a list of networks of limited length.
pub fn networks(
    table: &mut Table<'_>,
    key: &'static str,
    family: Family,
    problems: &Problems,
) -> Option<Vec<Network>> {
    bounded_list(table, key, "a network", problems, |text| network(text, family))
}

/// Reads a list of networks, or of words for networks, of limited length.
pub fn bounded_list<T>(
    table: &mut Table<'_>,
    key: &'static str,
    kind: &str,
    problems: &Problems,
    parse: impl Fn(&str) -> Result<T, Fault>,
) -> Option<Vec<T>> {
    let list = table.list(key, kind, parse)?;
    if let Some(item) = list.get(limits::NETWORKS) {
        let what = format!("`{key}` has more than {} networks", limits::NETWORKS);
        problems.add(&item.place, Fault::new(what, "join adjacent networks into larger ones"));
    }
    Some(list.into_iter().map(|item| item.value).collect())
}

/// Parses an address like [`endpoint`], and warns of one whose brackets are probably forgotten.
///
/// # Errors
///
/// As [`endpoint`].
pub fn address(text: &str, default_port: u16, problems: &Problems) -> Result<SocketAddr, Fault> {
    problems.warn(forgotten_brackets(text));
    endpoint(text, default_port)
}

/// Reads a path; none when it is absent or empty.
pub fn path(table: &mut Table<'_>, key: &'static str) -> Option<Item<PathBuf>> {
    table
        .parse(key, "a path", |text| Ok(PathBuf::from(text)))
        .filter(|item| !item.value.as_os_str().is_empty())
}
