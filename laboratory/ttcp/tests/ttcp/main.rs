//! Tests of T/TCP: two hosts on a link in virtual time.

mod attacks;
mod bad_links;
mod decoded;
mod fast_open;
mod network;
mod transactions;
