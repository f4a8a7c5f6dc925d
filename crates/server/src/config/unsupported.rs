//! Tables whose part of the server does not exist yet. Their values are checked like all others, so that a file with an
//! error is rejected now and not only when that part exists. A setting that asks for the part is an error that names the
//! key; one that asks for nothing (an empty list) is accepted.

use super::address::endpoint;
use super::fields::{ADDRESS, unsupported_path};
use super::table::Table;

/// `[tls]`.
pub fn tls(mut table: Table<'_>) {
    refuse_path(&mut table, "certificate");
    refuse_path(&mut table, "key");
    for (key, port) in [("listen-dot", 853), ("listen-doh", 443), ("listen-doq", 853)] {
        let list = table.list(key, ADDRESS, |text| endpoint(text, port));
        refuse_list(&table, key, list);
    }
    table.finish();
}

fn refuse_list<T>(table: &Table<'_>, key: &str, list: Option<Vec<super::report::Item<T>>>) {
    if let Some(first) = list.as_ref().and_then(|list| list.first()) {
        table.reject_unsupported(&first.place, key, "write [], or delete the key");
    }
}

fn refuse_path(table: &mut Table<'_>, key: &'static str) {
    if let Some(place) = unsupported_path(table, key) {
        table.reject_unsupported(&place, key, "delete the key");
    }
}
