//! `tls` and `http` statements of BIND: certificates of listeners, and the names that forwarders over TLS must have.

use super::syntax::Statement;
use crate::value;
use std::collections::HashMap;

/// The statements of a file, by their names.
#[derive(Debug, Default)]
pub(super) struct Encryption {
    tls: HashMap<String, TlsStatement>,
    /// Paths of `http` statements.
    paths: HashMap<String, Option<String>>,
}

/// A `tls` statement.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsStatement {
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
    /// The file with the trust anchors.
    pub(super) ca: Option<String>,
    /// The name that the certificate of a server must have.
    pub(super) name: Option<String>,
}

impl Encryption {
    /// Reads the statements of a file.
    pub(super) fn read(statements: &[Statement]) -> Encryption {
        let mut read = Encryption::default();
        for statement in statements {
            let block = statement.block().unwrap_or_default();
            let word = |keyword: &str| {
                let found = block.iter().find(|inner| inner.keyword() == keyword);
                found.map(|inner| inner.word(1).to_owned())
            };
            match statement.keyword() {
                "tls" => {
                    let one = TlsStatement {
                        certificate: word("cert-file"),
                        key: word("key-file"),
                        ca: word("ca-file"),
                        name: word("remote-hostname").as_deref().and_then(value::name),
                    };
                    read.tls.insert(statement.word(1).to_owned(), one);
                }
                "http" => {
                    let endpoints = block.iter().find(|inner| inner.keyword() == "endpoints");
                    let path = endpoints.and_then(|inner| Some(inner.block()?.first()?.keyword().to_owned()));
                    read.paths.insert(statement.word(1).to_owned(), path);
                }
                _ => {}
            }
        }
        read
    }

    /// The `tls` statement of this name; none for `none` and `ephemeral`, which name no certificate.
    pub(super) fn tls(&self, name: &str) -> Option<&TlsStatement> {
        self.tls.get(name)
    }

    /// The path of an `http` statement; `default` is BIND's own.
    pub(super) fn path(&self, name: &str) -> Option<String> {
        self.paths.get(name).cloned().unwrap_or_else(|| Some("/dns-query".to_owned()))
    }
}
