//! Tables whose part of the server does not exist yet. Their values are checked, so that a file is not found
//! wrong only when that part comes, and whatever asks for it is refused with the name of the key. What asks for
//! nothing (an empty list, a cache of no size) is accepted.

use super::address::endpoint;
use super::read::path_for_later;
use super::table::Table;
use super::{amount, limits};
use std::time::Duration;

/// `[cache]`.
pub fn cache(mut table: Table<'_>) {
    if let Some(size) = table.parse("size", "a size like \"64MiB\"", amount::size)
        && size.value > 0
    {
        table.not_yet(&size.place, "size", "write \"0MiB\" for no cache, or delete the key");
    }
    for (key, off) in [
        ("min-ttl", Some(Duration::ZERO)),
        ("max-ttl", None),
        ("max-negative-ttl", None),
        ("stale", Some(Duration::ZERO)),
    ] {
        if let Some(ttl) =
            table.parse(key, "a duration like \"1h\"", |text| amount::duration(text, limits::TTL))
            && Some(ttl.value) != off
        {
            table.not_yet(&ttl.place, key, "delete the key: there is no cache yet");
        }
    }
    if let Some(prefetch) = table.boolean("prefetch")
        && prefetch.value
    {
        table.not_yet(&prefetch.place, "prefetch = true", "write false, or delete the key");
    }
    table.finish();
}

/// `[tls]`.
pub fn tls(mut table: Table<'_>) {
    refuse_path(&mut table, "certificate");
    refuse_path(&mut table, "key");
    for (key, port) in [("listen-dot", 853), ("listen-doh", 443), ("listen-doq", 853)] {
        let list = table.list(key, "an address with or without a port", |text| endpoint(text, port));
        refuse_list(&table, key, list);
    }
    table.finish();
}

fn refuse_list<T>(table: &Table<'_>, key: &str, list: Option<Vec<super::report::Item<T>>>) {
    if let Some(first) = list.as_ref().and_then(|list| list.first()) {
        table.not_yet(&first.place, key, "write [], or delete the key");
    }
}

fn refuse_path(table: &mut Table<'_>, key: &'static str) {
    if let Some(place) = path_for_later(table, key) {
        table.not_yet(&place, key, "delete the key");
    }
}
