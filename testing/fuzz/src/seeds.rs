//! The initial inputs: a few of each kind, as people would write them. The search finds the rest.

use std::net::Ipv4Addr;

/// Values in configuration files. The keys come from the server's own table.
pub const CONFIG_WORDS: &[&str] = &[
    "2000-2999",
    "stagger ",
    "skip",
    "refuse",
    "64ff9b::/96",
    "2001:db8::/32",
    "192.0.2.53",
    "[2001:db8::53]:53",
    "128MiB",
    "1.35s",
    "250ms",
    "1d",
    "\"auto\"",
    "true",
    "false",
    "nas.home. 60 IN A 192.168.1.5",
    "pass",
    "synthesize",
    "\"system\"",
    " = [",
    "\\u0041",
];

/// Words of master files.
pub const ZONE_WORDS: &[&str] = &[
    "$ORIGIN ",
    "$TTL ",
    "$GENERATE ",
    "$INCLUDE ",
    " IN ",
    " CH ",
    " SOA ",
    " NS ",
    " A ",
    " AAAA ",
    " CNAME ",
    " DNAME ",
    " TXT ",
    " MX ",
    " SRV ",
    " PTR ",
    " TYPE65280 ",
    "\\# ",
    " CAA ",
    " HTTPS ",
    " SVCB ",
    " NAPTR ",
    " RRSIG ",
    " DS ",
    " DNSKEY ",
    "alpn=",
    " rpz-drop.",
    " rpz-passthru.",
    " rpz-tcp-only.",
    ".rpz-ip",
    ".rpz-client-ip",
    ".rpz-nsdname",
    ".rpz-nsip",
    "zz",
    "*.",
    "(",
    ")",
    ";",
    "\"",
    "\\",
    "192.0.2.1",
    "2001:db8::1",
    "1-20/2",
    "${0,3,d}",
];

/// The question `www.example. AAAA`.
const QUESTION: &[u8] = b"\x03www\x07example\0\0\x1c\0\x01";

/// Messages: queries, a negative answer, an alias, other types.
pub fn messages() -> Vec<Vec<u8>> {
    let head = |flags: [u8; 2], counts: [u8; 3]| {
        [&[0x12, 0x34][..], &flags, &[0, 1, 0, counts[0], 0, counts[1], 0, counts[2]], QUESTION].concat()
    };
    let opt = b"\0\0\x29\x04\xd0\0\0\x80\0\0\x0c\0\x0a\0\x08abcdefgh";
    let soa = b"\xc0\x10\0\x06\0\x01\0\0\x01\x2c\0\x1d\x02ns\xc0\x10\x01h\xc0\x10\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05";
    let alias = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01b\xc0\x10\xc0\x2d\0\x1c\0\x01\0\0\0\x3c\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01";
    let rest = b"\xc0\x0c\0\x21\0\x01\0\0\0\x3c\0\x09\0\x01\0\x02\0\x35\x01s\0\xc0\x0c\0\x23\0\x01\0\0\0\x3c\0\x0c\0\x01\0\x02\x01u\x02ab\0\x01r\0\
        \xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\x05\0\x0a\x01m\0\xc0\x0c\0\x27\0\x01\0\0\0\x3c\0\x02\xc0\x10\xc0\x0c\0\x10\0\x01\0\0\0\x3c\0\x03\x02hi";
    vec![
        head([1, 0], [0, 0, 0]),
        [&head([1, 0x20], [0, 0, 1])[..], opt].concat(),
        [&head([0x81, 0x80], [0, 1, 1])[..], soa, opt].concat(),
        [&head([0x81, 0x80], [2, 0, 0])[..], alias].concat(),
        [&head([0x85, 0x80], [5, 0, 1])[..], rest, opt].concat(),
    ]
}

/// Names as text, in pairs, and in a sequence.
pub fn names() -> Vec<Vec<u8>> {
    let mut row = vec![2];
    for label in ["a", "b", "www"] {
        row.extend([label.len() as u8]);
        row.extend(label.as_bytes());
        row.extend(b"\x07example\x03com\0\x07eXample\x03com\0\x03com\0");
    }
    let pair = b"\x0d\x03www\x07example\0\x07EXAMPLE\0";
    let mut longest = vec![1, 255];
    longest.extend([1, b'a'].repeat(127));
    longest.extend([0, 1, b'a', 0]);
    vec![
        b"\0www.example.".to_vec(),
        b"\0a\\.b\\032\\255.Example".to_vec(),
        [&[1], &pair[..]].concat(),
        row,
        longest,
    ]
}

/// OPT records behind a question, alone, and to be written.
pub fn edns() -> Vec<Vec<u8>> {
    let options =
        b"\x04\xd0\0\0\x80\0\0\x0a\0\x08abcdefgh\0\x0f\0\x04\0\x16no\0\x08\0\x07\0\x01\x18\0\xcb\0\x71";
    let written = b"\x02\x04\xd0\0\0\x80\x17\xff\0\x0a\x08abcdefgh\0\x08\x02\0\x01";
    vec![[&[0], &options[..]].concat(), [&[1], &options[..]].concat(), written.to_vec()]
}

/// Streams of some messages, in several sorts of pieces.
pub fn framing() -> Vec<Vec<u8>> {
    let stream = b"\0\x10message a, longr\0\x0dmessage b, l.\0\x0cmessage c, l\0\x02";
    vec![
        [&[3, 1, 1, 9], &stream[..]].concat(),
        [&[5, 20, 3, 2, 0, 5], &stream[..]].concat(),
        [&[0], &stream[..]].concat(),
        [&[1, 7], &b"\0\x03abc\0\x0cmessage c, l"[..]].concat(),
    ]
}

/// Query parts of requests over HTTPS: good ones, and one of each error.
pub fn doh() -> Vec<Vec<u8>> {
    [
        "dns=AAABAAABAAAAAAAAAAABAAE",
        "x=y&dns=%41%5f-_&z",
        "dns=AB",
        "dns=AA%4",
        "dns=AAAA&dns=AAAA",
        "dns=AA==",
    ]
    .map(Vec::from)
    .into()
}

/// Streams of DNS over QUIC: a good one, and one of each fault.
pub fn doq() -> Vec<Vec<u8>> {
    let query = |id: u8, flags: u8, option: u8| {
        let header = [0, id, flags, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        [&header[..], &[0, 0, 1, 0, 1], &[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 4], &[0, option, 0, 0]].concat()
    };
    let stream = |cuts: &[u8], message: &[u8]| {
        [&[cuts.len() as u8], cuts, &(message.len() as u16).to_be_bytes(), message].concat()
    };
    let good = stream(&[1, 0, 1, 7], &query(0, 1, 10));
    vec![
        good[..good.len() - 1].to_vec(),
        [&good[..], b"x"].concat(),
        good,
        stream(&[2], &query(1, 1, 10)),
        stream(&[], &query(0, 0x81, 10)),
        stream(&[40], &query(0, 1, 11)),
        stream(&[0, 3], b"short"),
        stream(&[0, 1], b""),
    ]
}

/// PROXY headers of every address family.
pub fn proxy() -> Vec<Vec<u8>> {
    let header = |command: u8, family: u8, rest: &[u8]| {
        [
            b"\r\n\r\n\0\r\nQUIT\n",
            &[command, family][..],
            &(rest.len() as u16).to_be_bytes(),
            rest,
            b"message",
        ]
        .concat()
    };
    let four = [&Ipv4Addr::new(198, 51, 100, 9).octets()[..], &[192, 0, 2, 53, 0x12, 0x34, 0, 53]].concat();
    vec![
        header(0x21, 0x11, &four),
        header(0x21, 0x12, &[&four[..], &[4, 0, 1, 9]].concat()),
        header(0x21, 0x22, &[7; 36]),
        header(0x21, 0x31, &[7; 216]),
        header(0x20, 0, b""),
        header(0x21, 0, b""),
    ]
}

/// Cookies of allowed lengths, and a secret.
pub fn cookies() -> Vec<Vec<u8>> {
    let before = |kind: u8| [&[kind, 0x5c, 0xf5, 0x9f, 0x11], &[0x20; 16][..], &[0, 9]].concat();
    vec![
        [&before(0)[..], b"abcdefgh"].concat(),
        [&before(2)[..], b"abcdefgh\x01\0\0\0\x5c\xf5\x9f\x11ABCDEFGH"].concat(),
        [&[1, 0x5c, 0xf5, 0x9f, 0x11, 192, 0, 2, 1, 1, 9][..], b"abcdefgh12345678"].concat(),
        b"e5e973e5a6b2a43f48e7dc849e37bfcf".to_vec(),
    ]
}

/// Configurations with every table.
pub fn configs() -> Vec<Vec<u8>> {
    [
        "",
        "[server]\nlisten = [\"[::]:53\", \"0.0.0.0:53\"]\nworkers = 2\nallow = [\"::1/128\"]\nsteer = \"flow\"\nuser = \"nobody\"\nproxy-from = [\"192.0.2.0/24\"]\n\
         [upstream]\nforwarders = [\"192.0.2.53\"]\n",
        "[upstream]\nforwarders = [\"192.0.2.53\", \"[2001:db8::53]:53\"]\nselect = \"fastest\"\ntimeout = \"1.5s\"\ntries = 5\ntransport = \"tcp\"\nmix-case = false\n\
         [[upstream.zone]]\nzone = \"corp.example\"\nforwarders = [\"10.0.0.53\"]\n",
        "upstream.forwarders = [\"::1\"]\n[dns64]\nprefixes = [\"64:ff9b::/96\", \"2001:db8::/32\"]\nsuffix = \"::\"\nexclude-aaaa = [\"::ffff:0:0/96\"]\nlookup = \"stagger 20ms\"\nptr = \"local\"\nptr-server = \"a.\"\n\
         [dns64.on-failure]\nservfail = \"pass\"\n[[dns64.rule]]\nclients = [\"2001:db8:a::/48\"]\nnames = [\"legacy.example\"]\nipv4 = [\"10.0.0.0/8\"]\nprefixes = []\n",
        "upstream.forwarders = [\"::1\"]\n[local]\nrecords = [\"nas.home. 60 IN A 192.168.1.5\", 'x. TXT \"a b\"']\n[filter]\nblock = [\"ads.example\"]\n[cache]\nsize = \"64MiB\"\nmin-ttl = \"1s\"\nstale = \"0s\"\n",
        "upstream.forwarders = [\"::1\"]\n[edns]\nudp-size = 1400\ncookies = true\ncookie-secret = \"e5e973e5a6b2a43f48e7dc849e37bfcf\"\nclient-subnet = \"forward\"\n[limits]\npending = 99\ntcp-idle = \"2s\"\n\
         [metrics]\nlisten = \"\"\n[control]\nsocket = \"/run/x\"\n[log]\nlevel = \"debug\"\nformat = \"json\"\nto = \"syslog\"\n",
        "[server\nlisten = 1\n[nonsense]\nx = \"\u{1b}\u{fc}\"\n[dns64]\nprefixes = [\"64:ff9b::/95\"]\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Master files.
pub fn zones() -> Vec<Vec<u8>> {
    [
        "$ORIGIN example.\n$TTL 60\n@ IN SOA ns hostmaster 1 2 3 4 ( 5 ) ; end\n NS ns\nns A 192.0.2.1\n AAAA 2001:db8::1\n* TXT \"a;b\" c\\032d\nsub NS ns.sub\nns.sub A 192.0.2.2\n",
        "example. 9 IN SOA a. b. 1 2 3 4 5\n$GENERATE 1-20/2 h${0,3,d}.example. A 192.0.2.$\nx.example. TYPE65280 \\# 3 010203\nm.example. MX 10 x.example.\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Response policy zones.
pub fn policies() -> Vec<Vec<u8>> {
    [
        "$TTL 30\n@ SOA localhost. root.localhost. 1 2 3 4 5\n NS localhost.\nbad.example CNAME .\n*.bad.example CNAME *.\nok.example CNAME rpz-passthru.\n24.0.2.0.192.rpz-ip CNAME rpz-drop.\n",
        "$ORIGIN p.test.\n@ 60 SOA a. b. 1 2 3 4 5\nd 60 A 192.0.2.1\nd 60 TXT \"x\"\n64.zz.db8.2001.rpz-ip 60 CNAME .\n32.1.2.0.192.rpz-client-ip 60 CNAME rpz-tcp-only.\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Hosts files.
pub fn hosts() -> Vec<Vec<u8>> {
    [
        "127.0.0.1 localhost # us\n::1 localhost ip6-localhost\n192.0.2.1\tnas.home NAS\n",
        "x y\nfe80::1%eth0 a\n192.0.2.1 a..b\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Words of query files.
pub const QUERY_WORDS: &[&str] = &[" AAAA\n", " HTTPS\n", " TYPE65535\n", "; ", "# ", "\\.", "\\255", "xn--"];

/// Query files of the load generator.
pub fn queries() -> Vec<Vec<u8>> {
    [
        "; comment\nwww.Example.com AAAA\n\n.\tns # root\na\\.b\\032c.test. type65\r\n",
        "www.example.com\na..b A\na\\256 A\nx QQ\nx A 1\n\u{fc} A\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Sequences of puts and lookups.
pub fn caches() -> Vec<Vec<u8>> {
    let mut flood = vec![3, 0];
    let mut collisions = vec![4, 1];
    for number in 0..60u8 {
        flood.extend([0, number, 0, 0, number, 2, 9, 13, number / 2, 0]);
        collisions.extend([number % 16, number / 3, number % 5, 1, number, 3, 7]);
    }
    vec![flood, collisions]
}

/// Sequences of steps.
pub fn engines() -> Vec<Vec<u8>> {
    // A query for AAAA with DO, or for A; the well-formed reply to the oldest query; some seconds.
    let (ask, ask4, reply, second) =
        ([0, 0, 0, 0, 0x81, 0], [0, 1, 1, 0, 0, 12], [6, 0, 0, 0, 1, 4, 9], [11, 1, 1]);
    let mut plain = vec![0, 0];
    let mut many = vec![4, 0x81];
    let mut odd = vec![0, 0x82];
    for round in 0..4 {
        for step in [&ask[..], &reply, &reply, &second, &ask4, &[6, 0, 4, 0, 0, 3], &[13, 0, 3]] {
            plain.extend_from_slice(step);
        }
        for name in 0..16 {
            many.extend([0, name, round, 0x30, 0x85, name]);
            many.extend([6, 0, name << 4 | name, round, 2, name, 7]);
        }
        many.extend([14, round | 0x80, 11, 3]);
        for kind in 0..16 {
            odd.extend([0, round, kind, 0, 0x89, 0, 7, kind, 9, 0, kind << 4 | round, 0, 1, 0, 40, kind]);
            odd.extend([10, 0, 0, 0, 0x15, 8, 0xc0, 12, 0, 1, 0, 1, 0, 0, 12, 0, 11, 3]);
        }
        odd.extend([11, 3, 5, round, 14, round]);
    }
    vec![plain, many, odd]
}

/// Replies for the cache: an alias with addresses, many owners, pointers to odd places.
pub fn stored() -> Vec<Vec<u8>> {
    let head = |settings: u8, name: u8, qtype: u8| [settings, name, qtype, 0, 0];
    // Owner, type and class, TTL, RDATA.
    let address = [0, 0, 0, 0, 3, 9];
    let alias = |target: &[u8]| [&[0, 0, 2, 0, 3][..], target].concat();
    // The owner of the address is the label after those of the question: the target.
    let chain = |labels: u8| [&alias(&[4, 2, b'x', b'y', b'z'])[..], &[0, 3, labels, 0, 0, 3, 1]].concat();
    let soa = [&[0xc0, 3, 1, 7, 0, 0][..], &[0, 0]].concat();
    let odd = |owner: u8| [0, 6, owner, 0x1d, 0, 0, 7, 9];
    let text = [0, 0, 3, 0, 5, 4, 0xc0, 12, 0, 0];
    let mut seeds = vec![
        [&head(0, 0, 1)[..], &address, &address].concat(),
        [&head(0, 1, 0)[..], &chain(3), &address].concat(),
        [&head(1, 0, 1)[..], &chain(2), &chain(2)].concat(),
        [&[3, 2, 0, 0, 3][..], &soa].concat(),
        [&head(4, 0, 2)[..], &text, &address].concat(),
        [&head(6, 1, 4)[..], &chain(3)].concat(),
    ];
    seeds.extend((0..4).map(|name| {
        let records: Vec<u8> = (0..20).flat_map(|at| [&address[..], &odd(at * 3 % 2)].concat()).collect();
        [&head(0, name, 1)[..], &records].concat()
    }));
    seeds
}

/// Sessions of an upstream: data and their end, with octets behind it, in several sorts of pieces.
pub fn upstream_tls() -> Vec<Vec<u8>> {
    let data = [0, 5, b'r', b'e', b'p', b'l', b'y'];
    let end = [4];
    let zeros = [6, 0, 0x1f, 0xff];
    let large = [3, 7, 0x40, 0];
    let mut seeds = Vec::new();
    for kind in [0, 1, 2, 4, 5] {
        for cuts in [&[0][..], &[1, 0], &[3, 0, 1, 255]] {
            let head = [&[kind], cuts].concat();
            seeds.push([&head[..], &data, &end, &zeros].concat());
            seeds.push([&head[..], &large, &large, &data].concat());
            seeds.push([&head[..], &data, &[7, 0, 9, 1], &data, &[5, 3, 22, 3, 3]].concat());
        }
    }
    seeds
}
