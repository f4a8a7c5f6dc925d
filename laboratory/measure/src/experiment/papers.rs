//! The papers whose experiments the laboratory repeats.

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Short name in lists.
    pub short: &'static str,
    /// Authors, title, year.
    pub citation: &'static str,
}

/// The paper about the bug and the IDs of TOTD.
pub const TOTD: Paper = Paper {
    short: "TOTD",
    citation: "Lencse and Repas, Improving the Performance and Security of the TOTD DNS64 Implementation, 2014",
};

/// The paper about authoritative servers for benchmarks.
pub const AUTHORITIES: Paper = Paper {
    short: "authorities",
    citation: "Lencse, Pivoda and Shima, Performance evaluation of DNS servers to build a benchmarking system of DNS64 \
               implementations, 2021",
};

/// The paper about MTD64.
pub const MTD64: Paper = Paper {
    short: "MTD64",
    citation: "Lencse and Soos, Design, Implementation and Testing of a Tiny Multi-Threaded DNS64 Server, 2016",
};

/// The paper about T/TCP for DNS.
pub const TTCP: Paper = Paper {
    short: "T/TCP",
    citation: "Rikitake, Nakao, Nogawa and Shimojo, T/TCP for DNS: A Performance and Security Analysis, 2003",
};

/// The paper about mtd64-ng.
pub const MTD64_NG: Paper = Paper {
    short: "mtd64-ng",
    citation: "Lencse and Bakai, Design, Implementation and Performance Estimation of mtd64-ng, 2017",
};

/// All papers, by year.
pub const PAPERS: [Paper; 5] = [TTCP, TOTD, MTD64, MTD64_NG, AUTHORITIES];
