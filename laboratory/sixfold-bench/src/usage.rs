//! Resource usage of processes, from `/proc/PID/task/*` (proc(5)): CPU time by thread, memory, context switches. A
//! device may have several processes, so all of a tree count.
//!
//! Readings are cumulative; the difference of two is the usage between them.

use measure::plan::core_list;
use measure::run::DeviceUse;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Ticks a second of the times in `/proc/PID/stat`: USER_HZ, which is 100 on every Linux that Rust supports.
const TICKS_PER_S: f64 = 100.0;

/// Resources that the processes of a device have used since they began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Its processes.
    pub processes: Vec<Process>,
    /// Time since the boot of the host, in seconds; 0: unknown.
    #[serde(default)]
    pub uptime_s: f64,
    /// Each core, and the ticks in which it ran no thread: idle, or busy with interrupts and packets. A list, because the keys of
    /// a map in JSON are strings.
    #[serde(default)]
    pub free_ticks: Vec<(u16, u64)>,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// Start time, in ticks since the boot of the host. Process ID and start time together identify a process.
    pub began: u64,
    /// Resident memory, in octets.
    pub resident: u64,
    /// The highest resident memory so far, in octets.
    pub resident_peak: u64,
    /// CPU ticks in user mode and in the kernel, of all its threads, including those that ended.
    pub ticks: (u64, u64),
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Cores that its threads may use, in the syntax of `taskset`; empty: unknown.
    #[serde(default)]
    pub allowed_cores: String,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Thread ID.
    pub tid: u32,
    /// Start time, in ticks since the boot of the host.
    pub began: u64,
    /// Its name.
    pub name: String,
    /// CPU time in nanoseconds, from the scheduler; 0 if the kernel does not report it.
    pub run_ns: u64,
    /// Time that the thread was ready to run and had no core, in nanoseconds; 0 if the kernel does not report it.
    #[serde(default)]
    pub waited_ns: u64,
    /// CPU ticks in user mode and in the kernel.
    pub ticks: (u64, u64),
    /// Voluntary context switches: the thread waited for something.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Reads the usage of these processes. Omits processes that have ended.
    pub fn read(pids: &[u32]) -> Usage {
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let uptime_s = uptime.split_ascii_whitespace().next().and_then(|text| text.parse().ok());
        Usage {
            processes: pids.iter().filter_map(|pid| Process::read(*pid)).collect(),
            uptime_s: uptime_s.unwrap_or(0.0),
            free_ticks: free_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        }
    }

    /// CPU time since the processes began, in seconds, in whole ticks for each process.
    pub fn cpu_s(&self) -> f64 {
        let ticks = |process: &Process| process.ticks.0 + process.ticks.1;
        self.processes.iter().map(ticks).sum::<u64>() as f64 / TICKS_PER_S
    }

    /// The usage since `earlier` was read, for `replies` valid replies.
    pub fn since(&self, earlier: &Usage, replies: u64) -> DeviceUse {
        let allowed = self.allowed_cores();
        let mut used = DeviceUse {
            waited_s: self.waited_since(earlier),
            allowed_cores: allowed.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
            ..DeviceUse::default()
        };
        for process in &self.processes {
            let key = |other: &&Process| (other.pid, other.began) == (process.pid, process.began);
            let before = earlier.processes.iter().find(key).cloned().unwrap_or_default();
            used.resident += process.resident;
            used.resident_peak += process.resident_peak;
            process.add(&before, &mut used);
        }
        used.user_s = used.threads.iter().map(|(_, user_s, _)| user_s).sum();
        used.system_s = used.threads.iter().map(|(_, _, system_s)| system_s).sum();
        if replies > 0 {
            used.cpu_us_per_query = (used.user_s + used.system_s) * 1e6 / replies as f64;
        }
        used.others_s = self.others_since(earlier, &allowed, used.user_s + used.system_s);
        used
    }

    /// The cores that the threads of the processes may use.
    pub fn allowed_cores(&self) -> BTreeSet<u16> {
        self.processes
            .iter()
            .flat_map(|process| core_list(&process.allowed_cores).unwrap_or_default())
            .collect()
    }

    /// CPU time of other programs on these cores since `earlier` was read, and time that the hypervisor took from them, in
    /// seconds: all time in which a core was not free and the processes did not use it (`own_s`).
    fn others_since(&self, earlier: &Usage, cores: &BTreeSet<u16>, own_s: f64) -> Option<f64> {
        if cores.is_empty() || earlier.uptime_s <= 0.0 {
            return None;
        }
        let passed_s = self.uptime_s - earlier.uptime_s;
        let free = |usage: &Usage, core: u16| {
            usage.free_ticks.iter().find(|(other, _)| *other == core).map(|(_, ticks)| *ticks)
        };
        let mut others_s = -own_s;
        for core in cores {
            let free = free(self, *core)?.saturating_sub(free(earlier, *core)?);
            others_s += (passed_s - free as f64 / TICKS_PER_S).max(0.0);
        }
        Some(others_s.max(0.0))
    }

    /// Time that threads were ready to run since `earlier` was read and had no core, in seconds: because they have
    /// fewer cores than work, or because other programs had the cores.
    fn waited_since(&self, earlier: &Usage) -> f64 {
        let threads = |usage: &Usage| -> BTreeMap<(u32, u64), u64> {
            let threads = usage.processes.iter().flat_map(|process| &process.threads);
            threads.map(|thread| ((thread.tid, thread.began), thread.waited_ns)).collect()
        };
        let before = threads(earlier);
        let waited =
            |(key, now): (&(u32, u64), &u64)| now.saturating_sub(before.get(key).copied().unwrap_or(0));
        threads(self).iter().map(waited).sum::<u64>() as f64 / 1e9
    }
}

impl Process {
    fn read(pid: u32) -> Option<Process> {
        let folder = format!("/proc/{pid}");
        let stat = Stat::read(&folder)?;
        let status = numbers(format!("{folder}/status"));
        let tasks = fs::read_dir(format!("{folder}/task")).into_iter().flatten().flatten();
        Some(Process {
            pid,
            began: stat.began,
            resident: status.get("VmRSS").map_or(0, |kib| kib * 1024),
            resident_peak: status.get("VmHWM").map_or(0, |kib| kib * 1024),
            ticks: stat.ticks,
            threads: tasks.filter_map(|task| Thread::read(task.file_name().to_str()?, &folder)).collect(),
            allowed_cores: allowed_cores(pid),
        })
    }

    /// Adds the usage since `before`.
    fn add(&self, before: &Process, used: &mut DeviceUse) {
        let mut ticks_of_threads = 0;
        for thread in &self.threads {
            let key = |other: &&Thread| (other.tid, other.began) == (thread.tid, thread.began);
            let was = before.threads.iter().find(key).cloned().unwrap_or_default();
            let (user_s, system_s) = thread.seconds_since(&was);
            if user_s + system_s > 0.0 {
                used.threads.push((thread.name.clone(), user_s, system_s));
                used.thread_waits_s.push(thread.waited_ns.saturating_sub(was.waited_ns) as f64 / 1e9);
            }
            used.voluntary_switches += thread.voluntary_switches.saturating_sub(was.voluntary_switches);
            used.involuntary_switches += thread.involuntary_switches.saturating_sub(was.involuntary_switches);
            ticks_of_threads += difference(thread.ticks, was.ticks).0 + difference(thread.ticks, was.ticks).1;
        }
        // The ticks of the process beyond those of its threads belong to threads that have ended since. Each figure is
        // cut to whole ticks, so a difference of up to two ticks a thread does not count.
        let (user, system) = difference(self.ticks, before.ticks);
        let beyond = (user + system).saturating_sub(ticks_of_threads);
        if beyond > 2 * (self.threads.len() as u64 + 1) {
            let part = beyond as f64 / (user + system) as f64 / TICKS_PER_S;
            used.threads.push(("ended threads".into(), user as f64 * part, system as f64 * part));
            used.thread_waits_s.push(0.0);
        }
    }
}

impl Thread {
    fn read(tid: &str, process: &str) -> Option<Thread> {
        let folder = format!("{process}/task/{tid}");
        let stat = Stat::read(&folder)?;
        let status = numbers(format!("{folder}/status"));
        let schedule = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
        let mut times = schedule.split_ascii_whitespace().filter_map(|text| text.parse().ok());
        Some(Thread {
            tid: tid.parse().ok()?,
            began: stat.began,
            name: stat.name,
            run_ns: times.next().unwrap_or(0),
            waited_ns: times.next().unwrap_or(0),
            ticks: stat.ticks,
            voluntary_switches: status.get("voluntary_ctxt_switches").copied().unwrap_or(0),
            involuntary_switches: status.get("nonvoluntary_ctxt_switches").copied().unwrap_or(0),
        })
    }

    /// Seconds in user mode and in the kernel since `before`. The scheduler's time is exact but not divided, the ticks
    /// are divided but coarse, so the exact time is divided in the ratio of the ticks.
    fn seconds_since(&self, before: &Thread) -> (f64, f64) {
        let (user, system) = difference(self.ticks, before.ticks);
        let ticks = (user + system) as f64;
        let run_s = self.run_ns.saturating_sub(before.run_ns) as f64 / 1e9;
        if self.run_ns == 0 {
            return (user as f64 / TICKS_PER_S, system as f64 / TICKS_PER_S);
        }
        // Less than a tick: use the ratio since the thread began.
        let (user, ticks) = if ticks > 0.0 {
            (user as f64, ticks)
        } else {
            (self.ticks.0 as f64, (self.ticks.0 + self.ticks.1) as f64)
        };
        let share = if ticks > 0.0 { user / ticks } else { 1.0 };
        (run_s * share, run_s * (1.0 - share))
    }
}

fn difference(now: (u64, u64), before: (u64, u64)) -> (u64, u64) {
    (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
}

/// The fields of a `stat` file that are used here.
pub(crate) struct Stat {
    /// Name of the command.
    pub(crate) name: String,
    /// The parent process.
    pub(crate) parent: u32,
    /// The process group.
    pub(crate) group: u32,
    /// CPU ticks in user mode and in the kernel.
    ticks: (u64, u64),
    /// Start time in ticks.
    began: u64,
}

impl Stat {
    /// Reads `FOLDER/stat`. Returns `None` if the process has ended or is a zombie.
    pub(crate) fn read(folder: &str) -> Option<Stat> {
        let text = fs::read_to_string(format!("{folder}/stat")).ok()?;
        // proc_pid_stat(5): the name stands in parentheses and may itself hold spaces and parentheses.
        let (front, rest) = text.rsplit_once(") ")?;
        let name = front.split_once(" (")?.1.to_owned();
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first field here is the third there (state); 4 ppid, 5 pgrp, 14 utime, 15 stime, 22 starttime.
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<u64>().ok());
        if matches!(fields.first(), Some(&"Z" | &"X")) {
            return None;
        }
        Some(Stat {
            name,
            parent: field(4)? as u32,
            group: field(5)? as u32,
            ticks: (field(14)?, field(15)?),
            began: field(22)?,
        })
    }
}

/// The cores that the threads of a process may use: those of any of them, because a program may bind single threads.
fn allowed_cores(pid: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let cores: BTreeSet<u16> = tasks.flat_map(|task| cores_of(&task.path().join("status"))).collect();
    cores.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

/// Ticks in which each core ran no thread, from the text of `/proc/stat` (proc_stat(5)): `idle`, `iowait`, `irq` and
/// `softirq`. Work on packets counts as free: it may be work for the device itself.
fn free_ticks(stat: &str) -> Vec<(u16, u64)> {
    let core = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal.
        Some((number, ticks.get(3..7)?.iter().sum()))
    };
    stat.lines().filter(|line| !line.starts_with("cpu ")).filter_map(core).collect()
}

/// The cores that a thread may use, from its `status` file.
pub(crate) fn cores_of(status: &Path) -> Vec<u16> {
    let text = fs::read_to_string(status).unwrap_or_default();
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(|list| core_list(list.trim()).ok()).unwrap_or_default()
}

/// The numbers in a file with lines `KEY: NUMBER`, such as a `status` file or `/proc/meminfo`.
pub(crate) fn numbers(file: impl AsRef<Path>) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        Some((key.to_owned(), value.split_ascii_whitespace().next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() {
        let mut value = 1u64;
        for step in 0..100_000_000u64 {
            value = std::hint::black_box(value.wrapping_mul(step | 1));
        }
    }

    #[test]
    fn usage_grows_with_work_and_names_the_thread_that_did_it() {
        let me = [std::process::id()];
        let before = Usage::read(&me);
        let (done, is_done) = std::sync::mpsc::channel();
        let (go, may_go) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::Builder::new().name("the-worker".into()).spawn(move || {
            work();
            done.send(()).unwrap();
            let _ = may_go.recv();
        });
        is_done.recv().unwrap();
        let after = Usage::read(&me);
        go.send(()).unwrap();
        worker.unwrap().join().unwrap();
        let used = after.since(&before, 1000);
        let by_worker = used.threads.iter().find(|(name, ..)| name == "the-worker").unwrap();
        assert!(by_worker.1 + by_worker.2 > 0.0);
        assert!(used.resident > 0 && used.resident_peak >= used.resident);
        assert!((used.cpu_us_per_query - (used.user_s + used.system_s) * 1000.0).abs() < 1e-6);
    }

    #[test]
    fn the_cpu_time_of_ended_threads_is_counted() {
        let ended = Process { ticks: (300, 100), threads: vec![Thread::default()], ..Process::default() };
        let mut used = DeviceUse::default();
        ended.add(&Process::default(), &mut used);
        assert_eq!(used.threads, [("ended threads".to_owned(), 3.0, 1.0)]);
    }

    #[test]
    fn the_cpu_time_of_processes_is_the_sum_of_their_ticks() {
        let process = |ticks| Process { ticks, ..Process::default() };
        let usage = Usage { processes: vec![process((300, 100)), process((7, 0))], ..Usage::default() };
        assert_eq!(usage.cpu_s(), 4.07);
    }

    #[test]
    fn the_scheduler_s_time_is_divided_as_the_ticks_are() {
        let before = Thread { run_ns: 1_000_000_000, ticks: (50, 50), ..Thread::default() };
        let after = Thread { run_ns: 3_000_000_000, ticks: (200, 100), ..Thread::default() };
        assert_eq!(after.seconds_since(&before), (1.5, 0.5));
        let coarse = Thread { run_ns: 0, ..after };
        assert_eq!(coarse.seconds_since(&before), (1.5, 0.5));
    }

    #[test]
    fn waiting_for_a_core_is_counted_by_thread() {
        let usage = |threads: &[(u32, u64)]| {
            let thread = |(tid, waited_ns): &(u32, u64)| Thread {
                tid: *tid,
                waited_ns: *waited_ns,
                ..Thread::default()
            };
            Usage {
                processes: vec![Process {
                    threads: threads.iter().map(thread).collect(),
                    ..Process::default()
                }],
                ..Usage::default()
            }
        };
        let (before, after) =
            (usage(&[(1, 5_000_000_000), (2, 9)]), usage(&[(1, 6_000_000_000), (3, 500_000_000)]));
        assert_eq!(after.waited_since(&before), 1.5);
    }

    #[test]
    fn a_process_that_is_gone_is_left_out() {
        assert_eq!(Usage::read(&[u32::MAX]).processes, []);
    }

    #[test]
    fn the_time_of_other_programs_is_what_is_left_of_the_cores() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 20 3 4 5 0 0\ncpu12 1 2 3 7 0 0 0 0 0 0\nintr 1 2\n";
        let before = free_ticks(stat);
        assert_eq!(before, [(0, 127), (12, 7)]);
        let usage = |uptime_s, free_ticks| Usage { uptime_s, free_ticks, ..Usage::default() };
        let (before, after) = (usage(50.0, before), usage(60.0, vec![(0, 527), (12, 107)]));
        let others =
            |cores: &[u16], own_s| after.others_since(&before, &cores.iter().copied().collect(), own_s);
        // Of 10 s, core 0 was free for 4 s and core 12 for 1 s.
        assert_eq!(others(&[0], 2.0), Some(4.0));
        assert_eq!(others(&[0, 12], 2.0), Some(13.0));
        assert_eq!(others(&[0], 7.0), Some(0.0));
        assert_eq!(others(&[0, 3], 2.0), None, "nothing is known of core 3");
        assert_eq!(others(&[], 2.0), None);
    }

    /// A process that only computes, on one core. It ends with this value.
    fn busy(core: u16) -> std::io::Result<kit::Killed> {
        let mut command = std::process::Command::new("taskset");
        command.args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"]);
        command.spawn().map(kit::Killed)
    }

    #[test]
    fn a_process_that_shares_its_core_with_another_one_is_starved_and_with_its_own_is_not() {
        let core = *crate::environment::allowed_cores().last().unwrap();
        let (Ok(one), Ok(other)) = (busy(core), busy(core)) else {
            return kit::missing("taskset", "apt-get install util-linux");
        };
        let (one, other) = (one.0.id(), other.0.id());
        let pinned = |usage: &Usage| usage.allowed_cores() == BTreeSet::from([core]);
        let read = || (Usage::read(&[one]), Usage::read(&[one, other]));
        let mut before = read();
        while !pinned(&before.1) {
            std::thread::yield_now();
            before = read();
        }
        // The clock is that of the two processes: they are observed for two seconds of the core, however long that takes.
        let (mut alone, mut both) = (DeviceUse::default(), DeviceUse::default());
        while both.user_s + both.system_s < 2.0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let now = read();
            (alone, both) = (now.0.since(&before.0, 0), now.1.since(&before.1, 0));
        }
        let found =
            measure::starvation::starvation(&alone, 0.0).expect("the other process has half of the core");
        assert!(found.waited_s > 0.3 && found.busiest_thread_s < 2.0, "{found:?}");
        // Together they wait for each other. Whatever else runs on this machine, that is not part of it.
        let without_others = DeviceUse { others_s: Some(0.0), ..both.clone() };
        assert!(both.waited_s > 0.3, "{both:?}");
        assert_eq!(measure::starvation::starvation(&without_others, 0.0), None);
    }
}
