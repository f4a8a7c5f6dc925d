//! Sixfold among real servers and clients, in network namespaces. One binary, so that all tests run side by side.

mod capture;
mod dnsdist;
mod failover;
mod large;
mod loss;
mod privileges;
mod reply_addresses;
mod resolution;
mod steering;
mod stream;
mod web;
