//! The built binary as an operator meets it: started, asked, signalled, reloaded, scraped, stopped. Everything happens
//! on the loopback interface, with free ports and directories of its own; every wait has an end.
#![forbid(unsafe_code)]

mod client;
mod daemon;
mod scrape;
mod upstream;

mod allow;
mod bounds;
mod control;
mod cookies;
mod demo;
mod documents;
mod explain;
mod forgery;
mod health;
mod memory;
mod metrics;
mod overload;
mod proxy;
mod reload;
mod startup;
mod steering;
mod stop;
