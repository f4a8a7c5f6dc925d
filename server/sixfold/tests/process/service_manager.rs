//! The messages to the service manager (sd_notify(3)), on a socket of the test.

use crate::daemon::{Folder, Process, TIMEOUT, ctl, free_port};
use crate::upstream::{Behavior, Upstream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

/// A server whose service manager is the test.
struct Service {
    notifications: UnixDatagram,
    process: Process,
    directory: Folder,
}

impl Service {
    /// Starts a server with a watchdog of this time.
    fn start(upstream: &Upstream, watchdog_usec: u32) -> Service {
        let directory = Folder::for_everybody();
        let socket = directory.file("notify");
        let notifications = UnixDatagram::bind(&socket).unwrap();
        notifications.set_read_timeout(Some(TIMEOUT)).unwrap();
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
        let text = format!(
            "server.listen = [\"127.0.0.1:{}\"]\nserver.workers = 1\nserver.user = \"root\"\nmetrics.listen = \"\"\n\
             upstream.forwarders = [\"{}\"]\ncontrol.socket = \"{}\"\n",
            free_port(),
            upstream.address,
            directory.file("control.sock").display()
        );
        let config = directory.file("sixfold.toml");
        std::fs::write(&config, text).unwrap();
        let command = [
            "env".to_owned(),
            format!("NOTIFY_SOCKET={}", socket.display()),
            format!("WATCHDOG_USEC={watchdog_usec}"),
        ];
        let arguments = ["serve", "--config", &config.display().to_string()].map(str::to_owned);
        let process = Process::start(&command, &arguments);
        Service { notifications, process, directory }
    }

    /// The next message, as lines.
    fn next(&self) -> Vec<String> {
        let mut message = [0; 4096];
        let octets = self.notifications.recv(&mut message).expect("a message to the service manager");
        String::from_utf8_lossy(&message[..octets]).lines().map(str::to_owned).collect()
    }

    /// The next message that is not a sign of life.
    fn next_news(&self) -> Vec<String> {
        // More signs of life than a minute has tenths of a second never come.
        (0..600).map(|_| self.next()).find(|lines| *lines != ["WATCHDOG=1"]).expect("news")
    }
}

#[test]
fn the_service_manager_hears_of_start_reload_failed_reload_and_stop() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    // Signs of life every 100 ms.
    let service = Service::start(&upstream, 200_000);
    assert_eq!(service.next_news(), ["STATUS=serving with 1 worker", "READY=1"], "{}", service.process.log());
    assert_eq!(service.next(), ["WATCHDOG=1"]);
    assert_eq!(service.next(), ["WATCHDOG=1"]);

    let is_reload = |lines: Vec<String>| {
        assert_eq!(lines[0], "RELOADING=1");
        let since = lines[1].strip_prefix("MONOTONIC_USEC=").expect("the time of the reload");
        assert!(since.parse::<u64>().is_ok_and(|time| time > 0), "{lines:?}");
    };
    service.process.signal("HUP");
    is_reload(service.next_news());
    assert_eq!(service.next_news(), ["STATUS=serving with 1 worker", "READY=1"]);

    std::fs::write(service.directory.file("sixfold.toml"), "nonsense = 1\n").unwrap();
    let output = ctl(&service.directory.file("control.sock"), &["reload"]);
    assert_eq!(output.status.code(), Some(1));
    is_reload(service.next_news());
    let lines = service.next_news();
    assert!(lines[0].contains("the last reload failed") && lines[1] == "READY=1", "{lines:?}");

    service.process.stop();
    assert_eq!(service.next_news(), ["STOPPING=1", "STATUS=answering the last queries"]);
}
