//! Prints the report of a sample run that was never measured, for viewing while the report's code is changed:
//! `cargo run -p sixfold-report --features sample --example sample -- full > page.html`

use sixfold_report::sample::{Shape, experiment, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|name| name == "experiment") {
        print!("{}", sixfold_report::experiment_html(&experiment()));
        return;
    }
    let shape = match arguments.first().map(String::as_str) {
        Some("full") => Shape::full(),
        Some("sweep") => Shape { cells: vec![(0.0, 0.0)], repetitions: 10, ..Shape::full() },
        _ => Shape::quick(),
    };
    let run = run(&shape);
    match arguments.get(1).map(String::as_str) {
        Some("markdown") => print!("{}", sixfold_report::markdown(&run)),
        Some("latex") => print!("{}", sixfold_report::latex(&run, &run.device.slug())),
        Some("csv") => print!("{}", sixfold_report::trials_csv(&run)),
        Some("json") => println!("{}", serde_json::to_string(&run).unwrap_or_default()),
        _ => print!("{}", sixfold_report::html(&run)),
    }
}
