//! Trust anchors of validation while the server runs: their keys are followed (RFC 5011), and operators add negative ones (RFC 7646).
//!
//! The rules are those of the crate `anchors`. `state.rs` has what it decides, behind a lock, with the file in which that survives;
//! `follower.rs` asks for keys, saves, and gives the workers what has changed; `observation.rs` verifies each key's signature,
//! `clock.rs` has the clocks, `news.rs` the lines of the log, `report.rs` what operators see.
//!
//! One task of the control thread does all of this, so neither workers nor the thread of the gateways wait for a disk. A reload runs
//! there, too: what it gives the workers and what this task gives them keep their order.

mod clock;
mod follower;
mod news;
mod observation;
pub mod report;
mod state;

pub use follower::{apply, follow};
pub use state::{HandedNegative, TrustAnchors};
