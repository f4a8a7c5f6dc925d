//! The mode of the control socket. A test program of its own: the umask belongs to the whole process.

use datapath::privileges::with_umask;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sockets that are bound while somebody looks.
const ROUNDS: usize = 10_000;

#[test]
fn there_is_no_moment_in_which_others_may_use_the_control_socket() {
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
