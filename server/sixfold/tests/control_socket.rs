//! The mode of the control socket, and the file in its place. A test program of its own: the umask belongs to the whole process.

use datapath::privileges::with_umask;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Sockets that are bound while somebody looks.
const ROUNDS: usize = 10_000;

/// Held by the test that runs.
static UMASK: Mutex<()> = Mutex::new(());

#[test]
fn a_socket_without_a_server_is_replaced_and_neither_one_with_a_server_nor_a_file() {
    let _alone = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = kit::Folder::new();
    let (path, file) = (directory.file("control.sock"), directory.write("precious", "data"));
    drop(sixfold::control::bind(&path).unwrap());
    let _server = sixfold::control::bind(&path).unwrap();
    let refused = |path| sixfold::control::bind(path).unwrap_err().to_string();
    assert_eq!(refused(&path), "another server listens there");
    assert_eq!(refused(&file), "a file that is no socket is there");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "data");
}

#[test]
fn there_is_no_moment_in_which_others_may_use_the_control_socket() {
    let _alone = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = kit::Folder::new();
    let path: PathBuf = directory.join("control.sock");
    let is_over = Arc::new(AtomicBool::new(false));
    // A watcher that sees the file as early as anybody else could.
    let watcher = {
        let (path, is_over) = (path.clone(), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let mut seen = std::collections::BTreeSet::new();
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(metadata) = std::fs::symlink_metadata(&path) {
                    seen.insert(metadata.permissions().mode() & 0o7777);
                }
            }
            seen
        })
    };
    for mask in [0, 0o777] {
        with_umask(mask, || {
            for _ in 0..ROUNDS {
                let listener = sixfold::control::bind(&path).unwrap();
                assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o660);
                drop(listener);
                std::fs::remove_file(&path).unwrap();
            }
        });
    }
    is_over.store(true, Ordering::Relaxed);
    let seen: Vec<String> = watcher.join().unwrap().iter().map(|mode| format!("{mode:o}")).collect();
    assert!(seen.is_empty() || seen == ["660"], "{seen:?}");
}
