//! All zones that are followed by RFC 5011, with the file in which their state survives.

use crate::anchor::{Data, TrustAnchor};
use crate::key::{Key, Moment, State};
use crate::limits::KEYS;
use crate::name::to_text;
use crate::saved::{RevokedKey, Saved, SavedZone};
use crate::state_file::{Files, Loaded, SaveError, StateFile};
use crate::trust_point::TrustPoint;
use dnssec::Digests;

/// Zones that are followed.
#[derive(Clone, Debug)]
pub struct TrustPoints {
    points: Vec<TrustPoint>,
}

/// Zones that are followed, as they are at the start.
#[derive(Clone, Debug)]
pub struct Start {
    /// The zones.
    pub points: TrustPoints,
    /// Warnings to be logged.
    pub warnings: Vec<String>,
}

impl TrustPoints {
    /// Begins with the anchors of a configuration, and goes on with what a state file has. See [`TrustPoint::new`] for the keys that count.
    pub fn start(configured: &[TrustAnchor], loaded: Loaded, now: Moment, digests: &impl Digests) -> Start {
        let mut warnings = Vec::new();
        let mut saved = match loaded {
            Loaded::None => Saved::default(),
            Loaded::State(saved) => saved,
            Loaded::Damaged { message, revoked } => {
                warnings.push(message);
                Saved { serial: 0, zones: with_revoked(revoked, now) }
            }
        };
        let mut names: Vec<&[u8]> = configured.iter().map(|anchor| &*anchor.zone).collect();
        names.sort_unstable();
        names.dedup();
        let mut points = Vec::new();
        for name in names {
            let data: Vec<Data> = configured
                .iter()
                .filter(|anchor| *anchor.zone == *name)
                .map(|anchor| anchor.data.clone())
                .collect();
            let place = saved.zones.iter().position(|zone| *zone.zone == *name);
            let zone = place.map(|place| saved.zones.remove(place));
            let continues = |zone: &SavedZone| TrustPoint::continues(zone, &data, digests);
            if zone.as_ref().is_some_and(|zone| !continues(zone)) {
                warnings.push(changed(name));
            }
            points.extend(TrustPoint::new(name, data, zone, now, digests));
        }
        Start { points: TrustPoints { points }, warnings }
    }

    /// All zones.
    pub fn iter(&self) -> impl Iterator<Item = &TrustPoint> {
        self.points.iter()
    }

    /// A zone.
    pub fn get(&mut self, zone: &[u8]) -> Option<&mut TrustPoint> {
        self.points.iter_mut().find(|point| point.zone() == zone)
    }

    /// Anchors of all zones.
    pub fn anchors(&self) -> Vec<TrustAnchor> {
        self.points.iter().flat_map(TrustPoint::anchors).collect()
    }

    /// Saves the state of all zones.
    ///
    /// # Errors
    ///
    /// Those of [`StateFile::save`].
    pub fn save(&self, file: &mut StateFile<impl Files>) -> Result<(), SaveError> {
        file.save(self.points.iter().map(TrustPoint::saved))
    }
}

fn changed(zone: &[u8]) -> String {
    format!(
        "an anchor of {} is no longer configured from which the keys in the state file were learned; the zone begins \
         anew with the configured anchors, and revoked keys stay revoked",
        to_text(zone)
    )
}

/// Zones of which only revoked keys are known.
fn with_revoked(revoked: Vec<RevokedKey>, now: Moment) -> Vec<SavedZone> {
    let mut zones: Vec<SavedZone> = Vec::new();
    for RevokedKey { zone: name, rdata } in revoked {
        let place = zones.iter().position(|zone| zone.zone == name).unwrap_or_else(|| {
            zones.push(SavedZone::new(&name));
            zones.len() - 1
        });
        let zone = &mut zones[place];
        if zone.keys.len() < KEYS && !zone.keys.iter().any(|key| key.is_pair_of(&rdata)) {
            let (id, state) = (zone.next_id, State::Revoked);
            zone.keys.push(Key { id, rdata, state, since: now.wall, held: 0, pending: None });
            zone.next_id += 1;
        }
    }
    zones
}
