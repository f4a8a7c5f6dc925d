//! The error codes of DNS over QUIC (RFC 9250 section 8.4), in CONNECTION_CLOSE, RESET_STREAM and STOP_SENDING.

use quinn::VarInt;

/// DOQ_NO_ERROR: a connection is closed without an error.
pub const NO_ERROR: VarInt = VarInt::from_u32(0x0);

/// DOQ_INTERNAL_ERROR: the server has no answer (section 4.3.2).
pub const INTERNAL_ERROR: VarInt = VarInt::from_u32(0x1);

/// DOQ_PROTOCOL_ERROR: the peer broke the rules of DNS over QUIC (section 4.3.3).
pub const PROTOCOL_ERROR: VarInt = VarInt::from_u32(0x2);

/// DOQ_REQUEST_CANCELLED: the client wants no answer any more (section 4.3.1).
pub const REQUEST_CANCELLED: VarInt = VarInt::from_u32(0x3);

/// DOQ_EXCESSIVE_LOAD: the peer does too much (sections 4.3.1 and 5.4).
pub const EXCESSIVE_LOAD: VarInt = VarInt::from_u32(0x4);

/// DOQ_UNSPECIFIED_ERROR: the peer has no better code (section 4.3). The server resets the stream of a query that it drops with it.
pub const UNSPECIFIED_ERROR: VarInt = VarInt::from_u32(0x5);
