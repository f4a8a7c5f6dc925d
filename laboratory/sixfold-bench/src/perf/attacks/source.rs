//! The attacked zones as content of the authority.

use authority::{Body, Kind, Source};
use servers::TrustAnchor;
use signed_zones::Anchor;
use signed_zones::attacks::{Attacked, Sizes};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::{Message, Rcode};

/// Octets of type and class behind the name of a question.
const TYPE_AND_CLASS: usize = 4;

/// All zones.
pub struct AttackedZones(Attacked);

impl fmt::Debug for AttackedZones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttackedZones")
    }
}

impl AttackedZones {
    /// Makes the zones, whose signatures are valid for a day.
    pub fn new(sizes: Sizes) -> AttackedZones {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        AttackedZones(Attacked::new(sizes, now as u32))
    }

    /// Trust anchor of the root. `None`: the zones have none that is a DS record.
    pub fn trust_anchor(&self) -> Option<TrustAnchor> {
        self.0.anchors().iter().find_map(|anchor| match anchor {
            Anchor::Ds(zone, rdata) => Some(TrustAnchor::of_rdata(signed_zones::name::text(zone), rdata)),
            _ => None,
        })
    }
}

impl Source for AttackedZones {
    fn body(&self, asked: &Message<'_>, start: usize, message: &mut [u8]) -> Option<Body> {
        let question = asked.question();
        let name = question[..question.len() - TYPE_AND_CLASS].to_ascii_lowercase();
        let reply = self.0.reply(&name, asked.qtype().0);
        let mut end = start;
        for record in reply.answer.iter().chain(&reply.authority) {
            let octets = record.octets();
            message.get_mut(end..end + octets.len())?.copy_from_slice(&octets);
            end += octets.len();
        }
        let counts = [reply.answer.len() as u16, reply.authority.len() as u16, 0];
        let rcode = Rcode(u16::from(reply.rcode));
        let kind = match rcode {
            Rcode::NXDOMAIN => Kind::NameError,
            _ if counts[0] == 0 => Kind::NoData,
            _ => Kind::Records,
        };
        Some(Body { kind, rcode, authoritative: true, end, counts })
    }
}
