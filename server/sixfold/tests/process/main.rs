//! The built binary from the view of an operator: start, queries, signals, reload, scrapes, stop. Everything runs on the
//! loopback interface, with free ports and separate directories; every wait has a limit.
#![forbid(unsafe_code)]

mod cli;
mod client;
mod daemon;
mod scrape;
mod service;
mod stream_upstream;
mod upstream;

mod activation;
mod allow;
mod control;
mod control_faults;
mod control_json;
mod cookies;
mod dead_aaaa;
mod demo;
mod dnstap;
mod documents;
mod encrypted;
mod encrypted_attacks;
mod encrypted_programs;
mod encrypted_quic;
mod encrypted_service;
mod events;
mod examples;
mod explain;
mod forgery;
mod gateways;
mod health;
mod limits;
mod listen_addresses;
mod local_networks;
mod log_targets;
mod memory;
mod metrics;
mod monitoring;
mod needs;
mod overload;
mod packet_cache;
mod proxy;
mod query_source;
mod readme;
mod reload;
mod sandbox;
mod service_manager;
mod startup;
mod status_page;
mod status_screens;
mod steering;
mod stop;
mod trace;
mod upgrade;
mod upgrade_failures;
mod upstream_tls;
