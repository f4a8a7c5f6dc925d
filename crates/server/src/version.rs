//! What `--version` says: version, commit, and what this build can do.

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from, `unknown` when it was built outside a checkout.
pub const COMMIT: &str = env!("SIXFOLD_COMMIT");

/// What `--version` prints after the name. The features are the parts of the server that this build has.
pub const LONG: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("SIXFOLD_COMMIT"), ")\nfeatures: sockets udp tcp");
