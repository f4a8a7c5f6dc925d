//! The built binary from the view of an operator: start, queries, signals, reload, scrapes, stop. Everything runs on the
//! loopback interface, with free ports and separate directories; every wait has a limit.
#![forbid(unsafe_code)]

mod client;
mod daemon;
mod scrape;
mod upstream;

mod allow;
mod control;
mod cookies;
mod demo;
mod documents;
mod events;
mod examples;
mod explain;
mod forgery;
mod health;
mod limits;
mod local_networks;
mod memory;
mod metrics;
mod overload;
mod proxy;
mod reload;
mod startup;
mod steering;
mod stop;
