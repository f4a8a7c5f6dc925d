//! Steady queries over UDP, for tests that need the time of each lost query: `steady SERVER NAME RATE SECONDS FLOWS END`. It prints a line
//! for each query ([`sixfold_interop::steady`]).

#![forbid(unsafe_code)]

use sixfold_interop::steady::Load;
use std::net::SocketAddr;

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, server, name, rate, seconds, flows, end] = &words[..] else {
        eprintln!("usage: steady SERVER NAME RATE SECONDS FLOWS END");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<u32>().expect("a number");
    let load = Load {
        server: SocketAddr::new(server.parse().expect("an address"), 53),
        rate: number(rate),
        seconds: number(seconds).into(),
        flows: number(flows) as usize,
        end: Some(end.into()),
    };
    load.run(|_| name.clone())
}
