//! The far end of the protocol: `sixfold-bench agent` carries out the orders of a `run`, on this host or another.

pub mod limits;
