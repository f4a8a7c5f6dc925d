//! The files of the server's certificate, followed while the server runs. A program that renews certificates (certbot, cert-manager with
//! the secrets of Kubernetes) replaces the files and need not tell the server.
//!
//! Only certificate, key and ticket secret are read again, not the configuration: somebody may be editing that.

use crate::config::{Tls, secret_file_warnings};
use crate::date;
use crate::running_server::ServerHandle;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tls::ServerTls;

/// Time between two warnings about a certificate that expires soon, or has expired.
const WARNING_PAUSE: Duration = Duration::from_secs(86_400);

/// Time between two looks at the files. Kubernetes itself takes a minute to bring a changed secret to a pod.
const PERIOD: Duration = Duration::from_secs(60);

/// Properties by which a replaced or rewritten file is known: device, inode, time of the last change (seconds, nanoseconds), octets. Symbolic
/// links are followed. None: there is no such file.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// Result of a look at the files.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// Nothing to say: no file has changed, or they have the certificate that is in use.
    Same,
    /// New handshakes use another certificate.
    Replaced,
    /// The files have changed, and cannot be used. The old certificate stays in use.
    Unusable(String),
}

/// The warnings about the end of the certificate.
#[derive(Default)]
struct Expiry {
    /// Time of the last warning, since the start of the server, which warned itself.
    warned: Duration,
    /// The certificate had expired at the last look; none before the first one.
    had_expired: Option<bool>,
}

impl Expiry {
    /// True if a warning is due, should there be one: once a day, and at once after the certificate has expired or was replaced.
    fn is_due(&mut self, now: Duration, expires: Option<SystemTime>, wall: SystemTime, is_new: bool) -> bool {
        let has_expired = expires.is_some_and(|end| end < wall);
        let before = self.had_expired.replace(has_expired).unwrap_or(has_expired);
        let is_due = is_new || has_expired && !before || now.saturating_sub(self.warned) >= WARNING_PAUSE;
        if is_due {
            self.warned = now;
        }
        is_due
    }
}

/// The files as they were at the last look.
#[derive(Default)]
struct CertificateFiles {
    stamps: Option<Vec<Stamp>>,
}

/// Follows the files until the server stops.
pub async fn follow(server: Arc<ServerHandle>) {
    let (mut files, mut expiry) = (CertificateFiles::default(), Expiry::default());
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if server.draining.load(Ordering::Relaxed) {
            return;
        }
        // A reload reads the same files.
        let _one_at_a_time = server.reloads.turn.lock().await;
        let (config, is_first) = (server.config(), files.stamps.is_none());
        // Reading may take long on a file system of the network.
        let looked = tokio::task::spawn_blocking(move || (files.look(&config.tls), files)).await;
        let look;
        (look, files) = looked.unwrap_or_else(|_| (Look::Same, CertificateFiles::default()));
        let config = server.config();
        let path = config.tls.certificate.as_deref().unwrap_or(Path::new("")).display();
        if let Some(tls) = &config.tls.server {
            // The start has warned, and so has a reload.
            let is_due = expiry.is_due(
                server.started.elapsed(),
                tls.expires(),
                SystemTime::now(),
                look == Look::Replaced,
            );
            if let Some(warning) = tls.warning().filter(|_| is_due) {
                tracing::warn!(
                    event = "certificate_expires",
                    expires = tls.expires().map(date::utc),
                    "the certificate in {path} {warning}"
                );
            }
        }
        match look {
            Look::Same => {}
            Look::Replaced => {
                tracing::info!(
                    event = "certificate_replaced",
                    "the certificate in {path} has changed: new connections over TLS get it"
                );
                // A program that renews certificates may write new files with other rights.
                for warning in secret_file_warnings(&config, None) {
                    tracing::warn!(event = "warning", "{warning}");
                }
            }
            // The start may have read files as root that the server itself cannot read.
            Look::Unusable(why) if is_first => {
                tracing::debug!(event = "certificate_not_followed", "cannot follow the certificate: {why}")
            }
            Look::Unusable(why) => tracing::warn!(
                event = "certificate_unusable",
                "the certificate in {path} or its key has changed and cannot be used: {why}; the old one stays in use"
            ),
        }
    }
}

impl CertificateFiles {
    /// Gives the running listeners the certificate, the key and the ticket secret of the files if these have changed. The first look
    /// compares the certificate itself with the one in use.
    fn look(&mut self, tls: &Tls) -> Look {
        let (Some(running), Some(certificate), Some(key)) = (&tls.server, &tls.certificate, &tls.key) else {
            return Look::Same;
        };
        let stamps: Vec<Stamp> = tls.files().map(|file| stamp(file)).collect();
        let before = self.stamps.replace(stamps);
        if before == self.stamps {
            return Look::Same;
        }
        match ServerTls::read(certificate, key, tls.ticket_secret_file.as_deref()) {
            // The time of a file may change without its contents.
            Ok(read) if before.is_none() && read == *running => Look::Same,
            Ok(read) => {
                let is_same = read == *running;
                running.replace(&read);
                if is_same { Look::Same } else { Look::Replaced }
            }
            Err(error) => Look::Unusable(format!("{error}; {}", error.remedy())),
        }
    }
}

fn stamp(file: &Path) -> Stamp {
    let found = std::fs::metadata(file).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Overrides, parse};
    use std::os::unix::fs::symlink;

    /// A secret in a folder, as Kubernetes mounts it: files that are links into a folder that is itself a link.
    struct Secret(kit::Folder);

    impl Secret {
        fn new() -> Secret {
            let folder = kit::Folder::new();
            for file in ["tls.crt", "tls.key"] {
                symlink(Path::new("..data").join(file), folder.join(file)).unwrap();
            }
            Secret(folder)
        }

        /// Replaces the contents at once.
        fn put(&self, version: &str, certificate: &str, key: &str) {
            let folder = self.0.join(version);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("tls.crt"), certificate).unwrap();
            std::fs::write(folder.join("tls.key"), key).unwrap();
            let link = self.0.join("..data_tmp");
            symlink(version, &link).unwrap();
            std::fs::rename(link, self.0.join("..data")).unwrap();
        }

        fn config(&self) -> Config {
            let file = |name: &str| self.0.join(name).display().to_string();
            let text = format!(
                "[upstream]\nforwarders = [\"192.0.2.53\"]\n[tls]\nlisten-dot = [\"[::1]:853\"]\ncertificate = \"{}\"\nkey = \"{}\"",
                file("tls.crt"),
                file("tls.key")
            );
            match parse("x.toml", &text, &Overrides::default(), "/etc/resolv.conf".as_ref()) {
                Ok((config, _)) => config,
                Err(_) => panic!("a configuration without faults"),
            }
        }
    }

    #[test]
    fn the_end_of_a_certificate_is_told_once_a_day_and_at_once_when_it_has_come() {
        const DAY: u64 = 86_400;
        let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let end = Some(begin + Duration::from_secs(3 * DAY + 7_000));
        let mut expiry = Expiry::default();
        // A look each minute, for five days.
        let told: Vec<u64> = (0..5 * 1_440)
            .map(|minute| Duration::from_secs(60 * minute))
            .filter(|&now| expiry.is_due(now, end, begin + now, false))
            .map(|now| now.as_secs())
            .collect();
        // The look after the end is 3 days, 1 hour and 57 minutes after the start.
        assert_eq!(told, [DAY, 2 * DAY, 3 * DAY, 3 * DAY + 7_020, 4 * DAY + 7_020]);
        assert!(expiry.is_due(Duration::from_secs(5 * DAY), end, begin, true), "another certificate");
    }

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_replaced_secret_is_used_without_a_reload() {
        let (secret, first, second) = (Secret::new(), pair(), pair());
        secret.put("1", &first.0, &first.1);
        let (config, mut files) = (secret.config(), CertificateFiles::default());
        assert_eq!([files.look(&config.tls), files.look(&config.tls)], [Look::Same, Look::Same]);
        secret.put("2", &second.0, &second.1);
        assert_eq!([files.look(&config.tls), files.look(&config.tls)], [Look::Replaced, Look::Same]);
        assert_eq!(config.tls.server, secret.config().tls.server);
    }

    #[test]
    fn a_certificate_that_was_replaced_before_the_first_look_is_used() {
        let (secret, first, second) = (Secret::new(), pair(), pair());
        secret.put("1", &first.0, &first.1);
        let config = secret.config();
        secret.put("2", &second.0, &second.1);
        assert_eq!(CertificateFiles::default().look(&config.tls), Look::Replaced);
    }

    #[test]
    fn files_that_do_not_fit_leave_the_old_certificate_in_use_until_they_do() {
        let (secret, first, second) = (Secret::new(), pair(), pair());
        secret.put("1", &first.0, &first.1);
        let (config, mut files) = (secret.config(), CertificateFiles::default());
        let old = secret.config().tls.server;
        files.look(&config.tls);
        // A program writes the certificate first, and its key a moment later.
        secret.put("2", &second.0, &first.1);
        let look = files.look(&config.tls);
        assert!(matches!(&look, Look::Unusable(why) if why.contains("does not go with")), "{look:?}");
        assert_eq!(config.tls.server, old);
        assert_eq!(files.look(&config.tls), Look::Same, "one warning is enough");
        secret.put("3", &second.0, &second.1);
        assert_eq!(files.look(&config.tls), Look::Replaced);
    }
}
