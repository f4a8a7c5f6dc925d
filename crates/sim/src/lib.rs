//! The real engine in a world that follows from one number: a virtual clock, a network that loses, delays, repeats and
//! damages, upstreams that misbehave, clients of many kinds, a forger. A small naive DNS64 ([`oracle`]) tells from what was
//! true and what was said which answers are allowed; every answer is compared.
//!
//! `docs/simulation.md` of the project says what is checked, and how a failing seed is played again.
#![forbid(unsafe_code)]

pub mod case;
pub mod client;
pub mod client_view;
mod comparison;
pub mod config;
pub mod cookie;
mod event_loop;
pub mod forger;
mod judge;
mod leg;
pub mod local_oracle;
pub mod message;
pub mod oracle;
pub mod outbox;
pub mod pending;
pub mod policy;
pub mod prefix;
mod rate_check;
pub mod rates;
pub mod reverse_name;
pub mod rng;
mod rpz_oracle;
pub mod run;
pub mod siege;
pub mod timeline;
pub mod truth;
pub mod upstream;
pub mod weather;
pub mod world;
