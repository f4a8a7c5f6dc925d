//! What a message says, in one form for all readers: names expanded, everything else as numbers and octets.

/// A message's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub id: u16,
    /// All 16 bits of flags but the reserved one, which one library does not keep.
    pub flags: u16,
    pub qname: Vec<u8>,
    pub qtype: u16,
    pub qclass: u16,
    /// Without OPT records.
    pub sections: [Vec<Item>; 3],
    pub edns: Option<Edns>,
}

/// The bit of the header's flags that means nothing.
pub const RESERVED: u16 = 0x0040;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub owner: Vec<u8>,
    pub rtype: u16,
    pub class: u16,
    pub ttl: u32,
    /// Names in it expanded, if [`crate::model`] knows its shape; None if a reader does not tell.
    pub rdata: Option<Vec<u8>>,
}

/// What an OPT record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edns {
    pub udp_size: u16,
    pub extended_rcode: u8,
    pub version: u8,
    pub dnssec_ok: bool,
    pub options: Vec<(u16, Vec<u8>)>,
}

impl View {
    /// Whether two readers saw the same. RDATA that one of them does not tell is not compared.
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

    /// With all letters small: for messages that were compressed anew, which may take the case of an equal name.
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
