//! What is tried in virtual time.

mod believed;
mod cached;
mod chains;
mod cookies;
mod dnssec;
mod explain;
mod forgery;
mod identity;
mod meeting;
mod museum;
mod museum_cache;
mod museum_page;
mod noise;
mod odd_queries;
mod outdated;
mod overload;
mod own;
mod pending;
mod reload;
mod scenario;
mod script;
mod storm;
mod subnets;
mod upstreams;
mod weather;
