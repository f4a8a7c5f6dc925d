//! The table `[cache]`: the size of the cache, and the lifetime of its entries.

use super::draft::Draft;
use super::fields::set;
use super::report::{Fault, Problems};
use super::table::Table;
use super::{amount, limits};
use std::time::Duration;

/// Reads the table.
pub fn read(mut table: Table<'_>, draft: &mut Draft, problems: &Problems) {
    let cache = &mut draft.config.cache;
    if let Some(size) = table.parse("size", "a size like \"64MiB\"", amount::size) {
        if size.value != 0 && !limits::CACHE.contains(&size.value) {
            let (low, high) = (limits::CACHE.start() >> 20, limits::CACHE.end() >> 30);
            let size_of = if size.value < *limits::CACHE.start() { "small" } else { "large" };
            let what = format!("a cache of {} octets is too {size_of}", size.value);
            let help = format!("write a size from \"{low}MiB\" to \"{high}GiB\", or \"0MiB\" for no cache");
            problems.add(&size.place, Fault::new(what, help));
        }
        cache.size = size.value;
    }
    let mut ttl =
        |key| table.parse(key, "a duration like \"1h\"", |text| amount::duration(text, limits::TTL));
    let (min, max) = (ttl("min-ttl"), ttl("max-ttl"));
    if let (Some(min), Some(max)) = (&min, &max)
        && min.value > max.value
    {
        let what = "`min-ttl` is larger than `max-ttl`";
        problems.add(&min.place, Fault::new(what, "write a smaller `min-ttl` or a larger `max-ttl`"));
    }
    set(&mut cache.min_ttl, min);
    set(&mut cache.max_ttl, max);
    set(&mut cache.max_negative_ttl, ttl("max-negative-ttl"));
    set(&mut cache.stale, ttl("stale"));
    // The other one of the two may be at its default.
    cache.max_ttl = cache.max_ttl.max(cache.min_ttl).max(Duration::from_secs(1));
    set(&mut cache.prefetch, table.boolean("prefetch"));
    table.finish();
}
