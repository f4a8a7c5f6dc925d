//! Text of `--version`: version, commit, and features of this build.

/// Version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Commit of the build; `unknown` for a build outside a checkout.
pub const COMMIT: &str = env!("SIXFOLD_COMMIT");

/// Text that `--version` prints after the name. The features are the parts of the server that this build has.
pub const LONG: &str = if cfg!(feature = "xdp") {
    concat!(
        env!("CARGO_PKG_VERSION"),
        " (commit ",
        env!("SIXFOLD_COMMIT"),
        ")\nfeatures: sockets xdp udp tcp tls https quic"
    )
} else {
    concat!(
        env!("CARGO_PKG_VERSION"),
        " (commit ",
        env!("SIXFOLD_COMMIT"),
        ")\nfeatures: sockets udp tcp tls https quic"
    )
};

/// The part of the build script that reads the commit, for its tests.
#[cfg(test)]
#[path = "../build/commit.rs"]
mod commit;
