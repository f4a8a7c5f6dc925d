//! Certificates of servers in the tests, made by openssl: an authority of the test signs them.

use crate::process::run;
use std::path::{Path, PathBuf};

/// Name in the certificate of every server.
pub const SERVER_NAME: &str = "dns.example";

/// Shell script that makes the files in the folder `$0` for the name `$1`.
const MAKE: &str = "cd \"$0\" && key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30' &&
    openssl req -x509 $key -subj '/CN=an authority' -keyout ca.key -out ca.pem &&
    openssl req -x509 $key -subj /CN=server -CA ca.pem -CAkey ca.key -addext \"subjectAltName=DNS:$1\" \
      -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out certificate.pem && chmod 644 *.pem";

/// Shell script that prints the pin of the key in the certificate `$0` (RFC 7858 section 4.2).
const PIN: &str = "openssl x509 -in \"$0\" -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | \
                   openssl base64";

/// Authority, and a certificate of it with [`SERVER_NAME`].
pub struct Certificate {
    folder: PathBuf,
}

impl Certificate {
    /// Makes the files in a folder, which every user can read.
    pub fn new(folder: &Path) -> Certificate {
        let ran = run(&["sh", "-c", MAKE, &folder.to_string_lossy(), SERVER_NAME]);
        assert!(ran.success, "openssl: {}", ran.stderr);
        Certificate { folder: folder.to_owned() }
    }

    /// Path of the certificate of the authority.
    pub fn authority(&self) -> String {
        self.file("ca.pem")
    }

    /// Path of the certificate of the server.
    pub fn certificate(&self) -> String {
        self.file(servers::CERTIFICATE_FILE)
    }

    /// Path of the key of the server.
    pub fn key(&self) -> String {
        self.file(servers::KEY_FILE)
    }

    /// Pin of the server's key in base64.
    pub fn pin(&self) -> String {
        let ran = run(&["sh", "-c", PIN, &self.certificate()]);
        let pin = ran.stdout.trim().to_owned();
        // 32 octets.
        assert_eq!(pin.len(), 44, "openssl: {pin} {}", ran.stderr);
        pin
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }
}
