//! The experiments in virtual time, against arithmetic and the rules of their protocols.

mod dns;
mod sequential;
