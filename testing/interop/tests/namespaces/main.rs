//! Sixfold among real servers and clients, in network namespaces. It is one binary, so that all tests run in
//! parallel.

mod anycast;
mod book;
mod capture;
mod cookies;
mod cookies_upstream;
mod dnsdist;
mod encrypted_clients;
mod failover;
mod faults;
mod forgery;
mod gateways;
mod large;
mod loss;
mod pref64;
mod privileges;
mod quic_clients;
mod recipes;
mod reply_addresses;
mod resolution;
mod steering;
mod stream;
mod tls_upstreams;
mod troubleshooting;
mod web;
mod xdp;
