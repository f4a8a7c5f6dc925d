//! Replies of the papers on MTD64 and mtd64-ng, and models of the way in which these programs rewrite them.
//!
//! [`replies`] builds messages of the lengths that the paper prints. [`model`] turns the reply to an A query into the reply
//! to an AAAA query as MTD64 does, as mtd64-ng does, and as RFC 6147 says. Both are pure functions of octets.

pub mod model;
pub mod replies;
