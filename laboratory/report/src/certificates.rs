//! Certificates of the authority by result: the self-test with the traffic that it received from the device.

use crate::escape::csv;
use crate::groups::{cell_name, sweep_parameter};
use crate::number;
use crate::put;
use crate::table::Table;
use measure::run::{CellResult, Certificate, Run, Upstream};

/// The results that have a certificate.
fn certified(run: &Run) -> impl Iterator<Item = (&CellResult, &Certificate)> {
    run.results.iter().filter_map(|result| Some((result, result.certificate.as_ref()?)))
}

/// The certificates as a table; `None` if there are none.
pub(crate) fn table(run: &Run) -> Option<Table> {
    let head = [
        "Result",
        "Self-test",
        "Device (queries/s)",
        "Required",
        "Passed at",
        "Certified",
        "With address",
        "Ports",
        "At a time: device",
        "self-test",
        "CPU µs/query: device",
        "self-test",
        "Cores full at: device",
        "self-test",
    ];
    let mut table = Table::new(
        "Self-test with the traffic of each result: the authority with the tester in the place of the device",
        2,
        &head,
    )
    .id("certificates");
    for (result, certificate) in certified(run) {
        let (device, test) = (certificate.behind_device, certificate.in_self_test);
        let of = |from: Option<Upstream>, value: fn(Upstream) -> Option<f64>, shown: fn(f64) -> String| {
            from.and_then(value).map_or(number::NONE.to_owned(), shown)
        };
        table.row([
            name(run, result),
            if certificate.sufficient { "passed" } else { "not passed" }.to_owned(),
            number::rate(certificate.device_qps),
            number::rate(certificate.required_qps),
            at_least(certificate, passed_qps(certificate)),
            at_least(certificate, certificate.certified_qps),
            number::percent(certificate.with_address),
            certificate.form.ports.to_string(),
            of(device, |it| Some(it.per_receive), number::brief),
            of(test, |it| Some(it.per_receive), number::brief),
            of(device, |it| it.cpu_us, number::brief),
            of(test, |it| it.cpu_us, number::brief),
            of(device, |it| it.full_qps, number::rate),
            of(test, |it| it.full_qps, number::rate),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn name(run: &Run, result: &CellResult) -> String {
    match &*result.sweep {
        "" => cell_name(result.cell),
        value => format!("{} = {value}, {}", sweep_parameter(run), cell_name(result.cell)),
    }
}

/// The rate that the self-test passed. Earlier releases certified that rate, and did not record it twice.
fn passed_qps(certificate: &Certificate) -> f64 {
    if certificate.passed_qps > 0.0 { certificate.passed_qps } else { certificate.certified_qps }
}

fn at_least(certificate: &Certificate, rate_qps: f64) -> String {
    let rate = number::rate(rate_qps);
    if certificate.censored { format!("≥ {rate}") } else { rate }
}

/// The certificates in one or two sentences; empty if there are none.
pub(crate) fn sentence(run: &Run) -> String {
    let all: Vec<_> = certified(run).collect();
    if all.is_empty() {
        return String::new();
    }
    let timeout = number::milliseconds(all[0].1.timeout_ms);
    let mut text = format!(
        "After the repetitions of each result the tester took the place of the device: from as many source ports and with as many \
         queries at a time as the authority had received from the device, and with as large a share of answers with an address, all \
         within {timeout}."
    );
    let failed: Vec<String> = all
        .iter()
        .filter(|(_, certificate)| !certificate.sufficient)
        .map(|(result, certificate)| {
            format!(
                "{}: {} of {} queries/s",
                name(run, result),
                at_least(certificate, certificate.certified_qps),
                number::rate(certificate.required_qps)
            )
        })
        .collect();
    if failed.is_empty() {
        let margin = |certificate: &Certificate| certificate.certified_qps / certificate.device_qps;
        let least = all.iter().map(|(_, certificate)| margin(certificate)).fold(f64::INFINITY, f64::min);
        put!(
            text,
            " The authority is certified for 2(1+d) times the rate of each result; the smallest ratio was {}.",
            number::brief(least)
        );
    } else {
        put!(
            text,
            " The authority is not certified for 2(1+d) times the rate of {} of {} results ({}).",
            failed.len(),
            all.len(),
            failed.join("; ")
        );
    }
    let ratios: Vec<f64> = all.iter().filter_map(|(_, certificate)| certificate.cost_ratio()).collect();
    if !ratios.is_empty() {
        let (low, high) =
            ratios.iter().fold((f64::INFINITY, 0.0f64), |(low, high), it| (low.min(*it), high.max(*it)));
        put!(
            text,
            " A query cost the authority {} to {} times as much CPU time in the self-test as behind the device; a ratio below 1 \
             reduces the certified rate.",
            number::brief(low),
            number::brief(high)
        );
    }
    text
}

/// One row per certificate after a row of column names (RFC 4180); empty without certificates. Unknown values are empty.
pub fn certificates_csv(run: &Run) -> String {
    let mut out = String::new();
    let known = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for (result, certificate) in certified(run) {
        if out.is_empty() {
            out.push_str(
                "sweep,aaaa_share,cached_share,device_qps,required_qps,passed_qps,certified_qps,sufficient,censored,timeout_ms,with_address,ports,group,burst",
            );
            for place in ["device", "self_test"] {
                for column in ["rate_qps", "per_receive", "per_buffer", "ports", "cpu_us", "full_qps"] {
                    put!(out, ",{place}_{column}");
                }
            }
            out.push_str("\r\n");
        }
        let form = certificate.form;
        put!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            csv(&result.sweep),
            result.cell.aaaa_share,
            result.cell.cached_share,
            certificate.device_qps,
            certificate.required_qps,
            passed_qps(certificate),
            certificate.certified_qps,
            certificate.sufficient,
            certificate.censored,
            certificate.timeout_ms,
            certificate.with_address,
            form.ports,
            form.group,
            form.burst
        );
        for seen in [certificate.behind_device, certificate.in_self_test] {
            let fields = [
                seen.map(|it| it.rate_qps),
                seen.map(|it| it.per_receive),
                seen.map(|it| it.per_buffer),
                seen.map(|it| it.ports),
                seen.and_then(|it| it.cpu_us),
                seen.and_then(|it| it.full_qps),
            ];
            for field in fields {
                put!(out, ",{}", known(field));
            }
        }
        out.push_str("\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};
    use measure::run::TrafficForm;

    fn run() -> Run {
        let mut run = sample::run(&Shape::quick());
        let seen = |per_receive, cpu_us: f64| Upstream {
            rate_qps: 20_000.0,
            per_receive,
            per_buffer: 1.0,
            ports: 40.0,
            cpu_us: Some(cpu_us),
            full_qps: Some(1e6 / cpu_us),
        };
        let certificate = Certificate {
            device_qps: 10_000.0,
            required_qps: 22_000.0,
            timeout_ms: 250,
            with_address: 0.5,
            form: TrafficForm { ports: 40, group: 1, burst: 2 },
            behind_device: Some(seen(2.1, 5.0)),
            in_self_test: Some(seen(2.4, 4.0)),
            ..Certificate::default()
        };
        run.results[0].certificate = Some(certificate.passed_at(31_000.0));
        run
    }

    #[test]
    fn a_certificate_is_a_row_with_both_traffics() {
        let run = run();
        let table = table(&run).unwrap();
        let row = &table.rows[0];
        // 31,000 times 4 us / 5 us.
        assert_eq!(row[1..6], ["passed", "10,000", "22,000", "31,000", "24,800"]);
        assert_eq!(row[6..], ["50\u{a0}%", "40", "2.10", "2.40", "5.00", "4.00", "200,000", "250,000"]);
        let text = sentence(&run);
        // 24,800 / 10,000, and 4 us / 5 us.
        assert!(text.contains("smallest ratio was 2.48") && text.contains("0.800 to 0.800 times"), "{text}");
        let rows: Vec<String> = certificates_csv(&run).lines().map(str::to_owned).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].split(',').count(), rows[1].split(',').count());
        assert!(
            rows[1].starts_with(",0,0,10000,22000,31000,24800,true,false,250,0.5,40,1,2,20000,2.1,"),
            "{}",
            rows[1]
        );
    }

    #[test]
    fn an_authority_that_is_too_slow_for_a_device_is_said_to_be_so() {
        let mut run = run();
        let certificate = run.results[0].certificate.as_mut().unwrap();
        (certificate.sufficient, certificate.certified_qps) = (false, 15_000.0);
        let text = sentence(&run);
        assert!(text.contains("is not certified") && text.contains("15,000 of 22,000 queries/s"), "{text}");
        assert_eq!(table(&run).unwrap().rows[0][1], "not passed");
    }

    #[test]
    fn a_record_of_an_earlier_release_has_no_certificates() {
        let mut run = run();
        run.results[0].certificate = None;
        assert_eq!(
            (table(&run), sentence(&run), certificates_csv(&run)),
            (None, String::new(), String::new())
        );
    }
}
