//! `sixfold ctl` without a server that answers: each fault has its own message, remedy and code.

use crate::daemon::{Folder, copy_program, ctl};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Output};

/// Runs `status` on a socket as text and as JSON, and checks that both say what is wrong: the text has all the words, the object
/// the code.
fn fails(run: impl Fn(&[&str]) -> Output, path: &Path, words: &[&str], code: &str) {
    let output = run(&["status"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{text}");
    let start = format!("sixfold: cannot reach the server at {}: ", path.display());
    assert!(text.starts_with(&start), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
    let output = run(&["status", "--json"]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["code"], code, "{object}");
    assert_eq!(object["error"], text["sixfold: ".len()..].trim_end(), "{object}");
}

#[test]
fn a_server_that_does_not_run_and_a_file_of_another_kind_are_told_apart() {
    let directory = Folder::for_everybody();
    let path = directory.file("nobody.sock");
    let run = |arguments: &[&str]| ctl(&path, arguments);
    fails(run, &path, &["is it running", "--socket", "--config"], "no_socket");
    drop(UnixListener::bind(&path).unwrap());
    fails(run, &path, &["no process listens", "start the server"], "not_running");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "text").unwrap();
    fails(run, &path, &["not a control socket"], "not_a_socket");
    let below = path.join("control.sock");
    fails(|arguments| ctl(&below, arguments), &below, &["is it running"], "no_socket");
    std::fs::remove_file(&path).unwrap();
    let _datagrams = UnixDatagram::bind(&path).unwrap();
    fails(run, &path, &["not a control socket"], "not_a_socket");
    let long = directory.file(&"a".repeat(120));
    fails(|arguments| ctl(&long, arguments), &long, &["--socket names another socket"], "system");
}

/// Listens on a socket as a server that answers every command with `answer`, and runs a check meanwhile.
fn answering(path: &Path, answer: &'static [u8], check: impl FnOnce()) {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).unwrap();
    let server = std::thread::spawn(move || {
        // The text, then the JSON.
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 100]);
            let _ = stream.write_all(answer);
        }
    });
    check();
    server.join().unwrap();
}

#[test]
fn an_answer_that_is_cut_off_or_comes_from_another_program_is_not_shown() {
    let directory = Folder::for_everybody();
    let path = directory.file("other.sock");
    let run = |arguments: &[&str]| ctl(&path, arguments);
    for (answer, words, code) in [
        (&b"220 mail.test ESMTP\r\n"[..], "does not come from a Sixfold server", "not_sixfold"),
        (b"\xff\xfe", "does not come from a Sixfold server", "not_sixfold"),
        (b"0 100\nversion     0.1.0\n", "before the end of its answer", "cut_off"),
        (b"", "before the end of its answer", "cut_off"),
    ] {
        answering(&path, answer, || fails(run, &path, &[words], code));
    }
    // A server that is older than the command, or than JSON.
    answering(&path, b"1\nunknown command: \"status\"\n", || {
        let text = String::from_utf8(run(&["status"]).stderr).unwrap();
        assert!(text.starts_with("sixfold: unknown command: \"status\"; the server at "), "{text}");
        assert!(text.contains("restart the server"), "{text}");
        let object: Value = serde_json::from_slice(&run(&["status", "--json"]).stdout).unwrap();
        assert_eq!(object["code"], "unknown_command");
    });
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let directory = Folder::for_everybody();
    let path = directory.file("silent.sock");
    // Connections wait in its queue: the process is stopped, or hangs.
    let _listener = UnixListener::bind(&path).unwrap();
    let text = ctl(&path, &["status", "--json"]);
    assert_eq!(text.status.code(), Some(1));
    let object: Value = serde_json::from_slice(&text.stdout).unwrap();
    assert_eq!(object["code"], "timeout", "{object}");
    assert!(object["error"].as_str().unwrap().contains("not answered within 12 s"), "{object}");
}

#[test]
fn who_may_not_use_the_socket_is_told_who_may() {
    let directory = Folder::for_everybody();
    // The user of the test may enter no folder of the build.
    let program = directory.file("sixfold");
    copy_program(&program);
    let path = directory.file("control.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(&path, 0o640);
    let is_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0");
    if is_root {
        // A group that has no name, and that the user is not in.
        std::os::unix::fs::chown(&path, Some(0), Some(64_321)).unwrap();
    }
    let run_at = |path: &Path, arguments: &[&str]| {
        let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = Command::new(if is_root { as_nobody[0].as_ref() } else { program.as_os_str() });
        if is_root {
            command.args(&as_nobody[1..]).arg(&program);
        }
        command.args(["ctl", "--socket"]).arg(path).args(arguments).output().unwrap()
    };
    if is_root {
        let words =
            ["permission denied", "belongs to root, group 64321, mode 0640", "you are nobody", "use sudo"];
        fails(|arguments| run_at(&path, arguments), &path, &words, "permission_denied");
        set_mode(&path, 0o660);
        let words = ["mode 0660", "or join the group 64321 (usermod -aG 64321 nobody) and log in again"];
        fails(|arguments| run_at(&path, arguments), &path, &words, "permission_denied");
    } else {
        set_mode(&path, 0o000);
        fails(|arguments| run_at(&path, arguments), &path, &["mode 0000", "use sudo"], "permission_denied");
    }
    let closed = directory.file("closed");
    std::fs::create_dir(&closed).unwrap();
    set_mode(&closed, 0o600);
    let inner = closed.join("run/control.sock");
    let words = [format!("may not enter {}; use sudo", closed.display())];
    fails(|arguments| run_at(&inner, arguments), &inner, &[&words[0]], "permission_denied");
}

#[test]
fn a_configuration_that_is_named_and_cannot_be_read_is_an_error() {
    let directory = Folder::for_everybody();
    let sixfold =
        |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_sixfold")).args(arguments).output().unwrap();
    let missing = directory.file("missing.toml").display().to_string();
    let output = sixfold(&["ctl", "--config", &missing, "status"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with(&format!("sixfold: cannot read {missing}: No such file")), "{text}");
    assert!(text.contains("--socket"), "{text}");
    let without = directory.file("without.toml");
    std::fs::write(&without, "control.socket = \"\"").unwrap();
    let output = sixfold(&["ctl", "--json", "--config", &without.display().to_string(), "status"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &object["code"]), (Some(1), &"no_socket_path".into()), "{object}");
    assert!(
        object["error"].as_str().unwrap().contains("the configuration has no control socket"),
        "{object}"
    );
}
