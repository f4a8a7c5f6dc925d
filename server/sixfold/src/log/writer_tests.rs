use super::*;
use kit::TIMEOUT;
use std::os::unix::net::UnixDatagram;
use std::thread::JoinHandle;

/// A writer on a thread, with sockets of its own.
struct Running {
    folder: kit::Folder,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(target: LogTarget) -> Running {
        let folder = kit::Folder::new();
        let counts = Arc::new(Counts::default());
        let queue = Arc::new(Queue::new(Arc::clone(&counts)));
        let config =
            config::Log { level: config::Level::Info, format: Format::Text, to: target, dnstap: None };
        let mut writer = Writer::new(Arc::clone(&queue), Arc::clone(&counts), &config);
        writer.paths = Paths { journald: folder.join("journald"), syslog: folder.join("syslog") };
        let thread = Some(std::thread::spawn(|| writer.run()));
        Running { folder, queue, counts, thread }
    }

    fn listen(&self, name: &str) -> UnixDatagram {
        let socket = UnixDatagram::bind(self.folder.join(name)).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket
    }

    fn log(&self, text: &str) {
        self.queue.push(Record::new(Level::INFO, "test", text.into()));
    }

    fn counts(&self) -> [u64; 3] {
        self.counts.by_result().map(|(_, count)| count)
    }

    /// Ends the log, and waits for the thread.
    fn end(&mut self) {
        self.queue.close();
        self.queue.wait_for_end(TIMEOUT);
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The text of the next message to a syslog daemon.
fn next(daemon: &UnixDatagram) -> String {
    let mut octets = [0; 10_000];
    let length = daemon.recv(&mut octets).unwrap();
    let message = std::str::from_utf8(&octets[..length]).unwrap();
    message.split_once(" - - ").unwrap().1.to_owned()
}

#[test]
fn a_daemon_that_hangs_holds_up_nobody_and_the_log_says_how_many_lines_it_lost() {
    const LINES: u64 = 4_000;
    let mut running = Running::start(LogTarget::Syslog);
    let daemon = running.listen("syslog");
    let started = Instant::now();
    (0..LINES).for_each(|number| running.log(&format!("line {number}")));
    // One write alone hangs for a second; without the queue there would be thousands.
    assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
    let [_, held_back, dropped] = running.counts();
    assert!(dropped > 0 && held_back == 0, "{dropped} {held_back}");
    let (mut seen, mut told) = (0, 0);
    while seen + told < LINES {
        let text = next(&daemon);
        match text
            .split_once(" lines of the log were dropped")
            .or(text.split_once(" line of the log was dropped"))
        {
            Some((number, _)) => told += number.parse::<u64>().unwrap(),
            None => {
                assert!(text.starts_with("line "), "{text}");
                seen += 1;
            }
        }
    }
    assert_eq!((seen + told, told), (LINES, running.counts()[2]));
    running.end();
}

#[test]
fn a_daemon_that_is_away_gets_the_lines_when_it_is_back() {
    let mut running = Running::start(LogTarget::Syslog);
    running.log("one\ntwo");
    running.log("three");
    // Some tries fail.
    std::thread::sleep(RETRY);
    let daemon = running.listen("syslog");
    assert_eq!([next(&daemon), next(&daemon), next(&daemon)], ["one", "two", "three"]);
    drop(daemon);
    std::fs::remove_file(running.folder.join("syslog")).unwrap();
    running.log("four");
    std::thread::sleep(RETRY);
    let daemon = running.listen("syslog");
    assert_eq!(next(&daemon), "four");
    running.end();
    assert_eq!(running.counts(), [3, 0, 0]);
}

#[test]
fn a_change_of_the_target_takes_the_lines_that_wait_along() {
    let mut running = Running::start(LogTarget::Syslog);
    running.log("waits");
    std::thread::sleep(RETRY);
    let journal = running.listen("journald");
    running.queue.configure(Format::Json, LogTarget::Journald);
    let mut octets = [0; 1_000];
    let length = journal.recv(&mut octets).unwrap();
    let message = std::str::from_utf8(&octets[..length]).unwrap();
    assert!(
        message.starts_with("PRIORITY=6\nSYSLOG_IDENTIFIER=sixfold\nMESSAGE={\"timestamp\":"),
        "{message}"
    );
    assert!(message.contains("\"message\":\"waits\""), "{message}");
    running.end();
}

#[test]
fn repetitions_are_held_back_and_counted_and_told_at_the_end() {
    let mut running = Running::start(LogTarget::Syslog);
    let daemon = running.listen("syslog");
    let reader = std::thread::spawn(move || {
        let mut lines = vec![next(&daemon)];
        while !lines.last().unwrap().starts_with("message repeated ") {
            lines.push(next(&daemon));
        }
        lines
    });
    (0..100).for_each(|_| running.log("noise"));
    running.end();
    let lines = reader.join().unwrap();
    assert_eq!(lines.len(), 21, "{lines:?}");
    assert!(
        lines[20].starts_with("message repeated 80 times in ") && lines[20].ends_with(": [noise]"),
        "{lines:?}"
    );
    assert_eq!(running.counts(), [21, 80, 0]);
}

#[test]
fn the_end_does_not_wait_for_a_daemon_that_is_not_there() {
    let mut running = Running::start(LogTarget::Journald);
    (0..5).for_each(|number| running.log(&format!("line {number}")));
    running.end();
    assert_eq!(running.counts(), [0, 0, 5]);
}
