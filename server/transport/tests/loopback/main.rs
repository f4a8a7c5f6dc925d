//! Tests of client streams over loopback, with a server that answers from another thread.

mod budget;
mod connection_limits;
mod dropped_queries;
mod exchange;
mod fixture;
mod https;
mod https_client;
mod https_programs;
mod https_streams;
mod quic;
mod quic_client;
mod stop;
mod timeouts;
mod tls_clients;
