//! The certificate of a run against the rate that the authority sustains behind a device: a short run for each device, alone
//! with single datagrams and with groups of them.
//!
//! A query costs the authority what its form makes it cost: an authority that is woken up for each query needs several times
//! the CPU time of one that finds many at once. So the CPU time of the authority for a query behind the device, at the highest
//! rate of the device, is compared with that in the self-test at nearly the same rate of queries. One divided by it is the rate
//! at which the authority's cores would be busy all the time.

use crate::lab::context::{Context, figure};
use crate::lab::device::{Template, templates};
use crate::run::{self, Ended};
use measure::experiment::Origin;
use measure::plan::{Draft, Plan};
use measure::run::Certificate;

/// Devices, as far as they are installed.
const DEVICES: [&str; 2] = ["sixfold", "unbound"];

/// Consecutive queries of the tester from one port: single datagrams, and those of earlier releases.
const GROUPS: [u16; 2] = [1, 8];

/// Largest relative difference of the self-test from the traffic behind a device.
const TOLERANCE: f64 = 0.2;

/// Name of the table.
const TABLE: &str = "Certificate against the rate that the authority sustains behind a device";

/// The runs, their figures and the claim.
///
/// # Errors
///
/// A run fails, or the user stops the experiment. A device that is not installed is a warning.
pub(super) fn run(context: &mut Context) -> Result<(), String> {
    let cores = crate::environment::allowed_cores();
    let (mut inside, mut compared) = (Vec::new(), Vec::new());
    for template in templates(context, &DEVICES)? {
        for group in GROUPS {
            let row = format!("{}, {}", template.name, traffic(group));
            context.progress(&format!("a run of {row}"))?;
            let Some(certificate) = certificate(context, &template, group, &cores)? else { continue };
            figures(context, &row, &certificate);
            if let Some(ratio) = certificate.cost_ratio() {
                let difference = 1.0 / ratio - 1.0;
                compared.push(format!("{row}: {:+.0} %", 100.0 * difference));
                inside.push(difference.abs() <= TOLERANCE);
            }
        }
    }
    if compared.is_empty() {
        context.warning("no certificate could be compared: no device is installed, or the authority had no thread of its own");
        return Ok(());
    }
    if context.options.quick {
        // A trial of a quarter of a second on a busy host measures the host.
        context
            .warning("the short version does not judge the certificates: leave --quick out, on an idle host");
    } else {
        context.claim(
            "With the traffic of the self-test the authority sustains the rate that it sustains behind the device, within 20 %",
            "a rate in the self-test that is more than 20 % above or below that behind one of the devices",
            compared.join("; "),
            inside.iter().all(|inside| *inside),
        );
    }
    Ok(())
}

fn traffic(group: u16) -> String {
    if group == 1 { "single datagrams".to_owned() } else { format!("groups of {group}") }
}

/// The certificate of a run; `None` if it has none.
fn certificate(
    context: &mut Context,
    template: &Template,
    group: u16,
    cores: &[u16],
) -> Result<Option<Certificate>, String> {
    let trial_ms = context.choose(250, 5_000);
    let plan = plan(template, group, trial_ms, cores)?;
    let folder = context.out.join(format!("certificate-{}-group-{group}", template.name));
    // The folder of an earlier experiment.
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    match run::begin(&plan, &folder, true, &context.stop) {
        Ok(Ended::Complete(run)) => Ok(run.results.first().and_then(|result| result.certificate)),
        Ok(Ended::Interrupted) => {
            context.check_stop()?;
            Ok(None)
        }
        Ok(Ended::Stopped(why)) | Err(why) => {
            context.warning(format!("{}, {}: {why}", template.name, traffic(group)));
            Ok(None)
        }
    }
}

/// The plan of a run: the device on a core of its own, and the authority on another one with a thread of its own. The tester
/// has the rest; on two cores it shares that of the authority.
fn plan(template: &Template, group: u16, trial_ms: u64, cores: &[u16]) -> Result<Plan, String> {
    let (device, authority, tester) = match cores {
        [device, authority, tester @ ..] if !tester.is_empty() => (*device, *authority, tester.to_vec()),
        [device, rest] => (*device, *rest, vec![*rest]),
        [only] => (*only, *only, vec![*only]),
        _ => (0, 0, vec![0]),
    };
    let program = template.program.as_ref().map_or(String::new(), |path| format!("program = {path:?}\n"));
    let text = format!(
        "profile = \"quick\"\n\
         [trial]\nduration = \"{trial_ms}ms\"\npause = \"100ms\"\n\
         [search]\nrepetitions = 1\nconfirm = false\ncurve = []\nprecision = 0.1\n\
         [device]\ntemplate = \"{}\"\n{program}cores = \"{device}\"\n\
         [authority]\ncores = [{authority}]\n\
         [tester]\ngroup = {group}\ncores = {tester:?}\n",
        template.name
    );
    Draft::parse(&text)
        .and_then(Draft::finish)
        .map_err(|error| format!("the plan of the certificate: {error}"))
}

fn figures(context: &mut Context, row: &str, certificate: &Certificate) {
    let mut add = |column: &str, value: Option<f64>, unit: &str| {
        if let Some(value) = value {
            context.figure(figure(TABLE, row, column, value, unit, Origin::Measured));
        }
    };
    let (device, test) = (certificate.behind_device, certificate.in_self_test);
    add("rate of the device", Some(certificate.device_qps), "1/s");
    add("rate at the authority", device.map(|it| it.rate_qps), "1/s");
    add("queries at a time, behind the device", device.map(|it| it.per_receive), "");
    add("queries at a time, self-test", test.map(|it| it.per_receive), "");
    add("ports, behind the device", device.map(|it| it.ports), "");
    add("ports, self-test", test.map(|it| it.ports), "");
    add("CPU time of the authority for a query, behind the device", device.and_then(|it| it.cpu_us), "us");
    add("CPU time of the authority for a query, self-test", test.and_then(|it| it.cpu_us), "us");
    add("core full at, behind the device", device.and_then(|it| it.full_qps), "1/s");
    add("core full at, self-test", test.and_then(|it| it.full_qps), "1/s");
    add("self-test against device", certificate.cost_ratio().map(|ratio| 100.0 * (1.0 / ratio - 1.0)), "%");
    add("required by RFC 8219", Some(certificate.required_qps), "1/s");
    add("passed", Some(certificate.passed_qps), "1/s");
    add("certified, reduced by the ratio of the CPU times", Some(certificate.certified_qps), "1/s");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_has_a_thread_of_its_own_wherever_it_runs() {
        let template = Template { name: "sixfold".to_owned(), program: Some("/opt/six fold".to_owned()) };
        for (cores, tester, authority, device) in [
            (&[3][..], vec![3], vec![3], "3"),
            (&[0, 1], vec![1], vec![1], "0"),
            (&[0, 1, 2, 5], vec![2, 5], vec![1], "0"),
        ] {
            let plan = plan(&template, 8, 250, cores).unwrap();
            assert_eq!((plan.tester.cores, plan.authority.cores), (tester, authority));
            assert_eq!(
                (&*plan.device.cores, &*plan.device.program, plan.tester.group),
                (device, "/opt/six fold", 8)
            );
        }
    }
}
