//! Fields that several tables have.

use super::address::{Family, Network, network};
use super::limits;
use super::report::{Fault, Item, Place, Problems};
use super::table::Table;
use std::path::PathBuf;

/// The kind of a value that is an address, for error messages.
pub const ADDRESS: &str = "an address with or without a port";

/// Overwrites a default with what was read, if anything was.
pub fn set<T>(field: &mut T, item: Option<Item<T>>) {
    if let Some(item) = item {
        *field = item.value;
    }
}

/// Like [`set`], for numbers whose range fits the field's type.
pub fn set_number<T: TryFrom<u64>>(field: &mut T, item: Option<Item<u64>>) {
    if let Some(Ok(value)) = item.map(|item| T::try_from(item.value)) {
        *field = value;
    }
}

/// A list of networks, of bounded length.
pub fn networks(
    table: &mut Table<'_>,
    key: &'static str,
    family: Family,
    problems: &Problems,
) -> Option<Vec<Network>> {
    let list = table.list(key, "a network", |text| network(text, family))?;
    if let Some(item) = list.get(limits::NETWORKS) {
        let what = format!("`{key}` has more than {} networks", limits::NETWORKS);
        problems.add(&item.place, Fault::new(what, "join neighbours into larger networks"));
    }
    Some(list.into_iter().map(|item| item.value).collect())
}

/// A path; none when it is absent or empty.
pub fn path(table: &mut Table<'_>, key: &'static str) -> Option<Item<PathBuf>> {
    table
        .parse(key, "a path", |text| Ok(PathBuf::from(text)))
        .filter(|item| !item.value.as_os_str().is_empty())
}

/// The place of a path that nothing uses yet; none when it is absent or empty.
pub fn path_for_later(table: &mut Table<'_>, key: &'static str) -> Option<Place> {
    path(table, key).map(|item| item.place)
}
