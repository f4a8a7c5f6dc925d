//! Sixfold among real servers and clients, in network namespaces. It is one binary, so that all tests run in
//! parallel.

mod capture;
mod cookies;
mod cookies_upstream;
mod dnsdist;
mod failover;
mod forgery;
mod large;
mod loss;
mod privileges;
mod reply_addresses;
mod resolution;
mod steering;
mod stream;
mod weather;
mod web;
