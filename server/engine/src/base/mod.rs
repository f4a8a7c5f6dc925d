//! Data structures without DNS meaning: slab, timer wheel, max tree, keyed hashes, random numbers, lookup tables, counts of frequent keys,
//! frame buffers, time.
//!
//! Nothing here knows a query, a client, an upstream or a setting. Every structure is reserved or bounded at creation.
//!
//! Read `slab.rs` first: pending queries and questions in flight live in slabs and name each other by index.

pub(crate) mod buffers;
pub(crate) mod max_tree;
pub(crate) mod name_hash;
pub(crate) mod name_table;
pub mod network;
pub(crate) mod random;
pub(crate) mod range_map;
pub(crate) mod ring;
pub(crate) mod slab;
pub(crate) mod space_saving;
pub mod time;
pub(crate) mod timer_wheel;
