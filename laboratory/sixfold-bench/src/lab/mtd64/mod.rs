//! Experiments of the papers on MTD64 (2016) and mtd64-ng (2017).
//!
//! `functions/` repeats the functional tests and the tests of the reply length, `speed/` the test with dns64perf,
//! `overload.rs` floods the servers, `prices/` measures functions one by one, and `threads.rs` is the search for the highest rate against
//! the number of threads. `devices.rs` starts the servers, MTD64, mtd64-ng and TOTD among them; `place.rs` is the network that these three
//! need, `cores.rs` has the cores of the roles, and `client.rs` asks one query.

mod client;
mod cores;
pub mod devices;
pub mod functions;
mod limits;
pub mod overload;
mod place;
pub mod prices;
pub mod speed;
pub mod threads;
