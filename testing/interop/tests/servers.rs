//! This server beside others: the conformance cases, the differential run, translated configurations.

mod conformance;
#[path = "convert/main.rs"]
mod convert;
mod differential;
