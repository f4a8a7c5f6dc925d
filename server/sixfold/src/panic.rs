//! The end of the process by a panic. A worker that is gone would leave its names without answers, so any panic ends the process, and the
//! service manager starts it again. Release builds abort by themselves (`panic = "abort"`); the hook makes other builds, and so the tests,
//! do the same.

use std::io::Write;

/// The remedy of a panic.
const FAULT: &str = "this is a fault of the program, which ends now; report it with the lines above: the section BUGS of sixfold(8) says how";

/// Makes a panic of any thread end the process, once its message is written.
pub fn end_process_on_panic() {
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        show(panic);
        // If standard error is closed, nobody can be told.
        let _ = writeln!(std::io::stderr(), "sixfold: {FAULT}");
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Set for the child.
    const CHILD: &str = "SIXFOLD_PANIC_TEST";

    #[test]
    fn a_panic_of_any_thread_ends_the_process_with_its_message() {
        if std::env::var_os(CHILD).is_some() {
            super::end_process_on_panic();
            let worker = std::thread::Builder::new().name("worker-0".into());
            let ended = worker.spawn(|| panic!("the message of the panic")).unwrap().join();
            println!("the process goes on: {}", ended.is_err());
            return;
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "panic::tests::a_panic_of_any_thread_ends_the_process_with_its_message"])
            .arg("--nocapture")
            .env(CHILD, "1")
            .output()
            .unwrap();
        let [said, printed] = [&output.stderr, &output.stdout].map(|octets| String::from_utf8_lossy(octets));
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}{printed}");
        assert!(said.contains("worker-0") && said.contains("the message of the panic"), "{said}");
        assert!(said.contains("BUGS of sixfold(8)") && !printed.contains("goes on"), "{said}{printed}");
    }
}
