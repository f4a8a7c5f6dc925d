//! Contents of a message in one form for all readers: names expanded, everything else as numbers and octets.

/// Contents of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub id: u16,
    /// All 16 bits of flags except the reserved one, which one library does not keep.
    pub flags: u16,
    pub qname: Vec<u8>,
    pub qtype: u16,
    pub qclass: u16,
    /// Without OPT records.
    pub sections: [Vec<Item>; 3],
    pub edns: Option<Edns>,
}

/// Reserved bit of the header's flags.
pub const RESERVED: u16 = 0x0040;

/// Record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub owner: Vec<u8>,
    pub rtype: u16,
    pub class: u16,
    pub ttl: u32,
    /// RDATA with expanded names, if [`crate::model`] knows its layout; `None` if a reader does not report it.
    pub rdata: Option<Vec<u8>>,
}

/// Contents of an OPT record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edns {
    pub udp_size: u16,
    pub extended_rcode: u8,
    pub version: u8,
    pub dnssec_ok: bool,
    pub options: Vec<(u16, Vec<u8>)>,
}

impl View {
    /// True if two readers read equal contents. RDATA that one of them does not report is not compared.
    pub fn agrees(&self, other: &View) -> bool {
        let same_head = (self.id, self.flags, self.qtype, self.qclass)
            == (other.id, other.flags, other.qtype, other.qclass);
        same_head
            && self.qname == other.qname
            && self.edns == other.edns
            && self.sections.iter().zip(&other.sections).all(|(ours, theirs)| {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.agrees(b))
            })
    }

    /// Contents with all letters in lower case: for messages that were compressed anew, which may take the case of an
    /// equal name.
    pub fn folded(mut self, names_in: impl Fn(u16) -> bool) -> View {
        self.qname.make_ascii_lowercase();
        for item in self.sections.iter_mut().flatten() {
            item.owner.make_ascii_lowercase();
            if names_in(item.rtype) {
                item.rdata.iter_mut().for_each(|rdata| rdata.make_ascii_lowercase());
            }
        }
        self
    }
}

impl Item {
    fn agrees(&self, other: &Item) -> bool {
        let same_rdata = match (&self.rdata, &other.rdata) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        let same_numbers = (self.rtype, self.class, self.ttl) == (other.rtype, other.class, other.ttl);
        self.owner == other.owner && same_numbers && same_rdata
    }
}
