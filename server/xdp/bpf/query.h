/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Queries that the packet cache may answer (answer.h): plain ones. packet_cache/query.rs of the engine has the same conditions.
 */

#include "checksum.h"

enum {
	/* Octets of the longest name, with the root. */
	LONGEST_NAME = 64,
	/* Octets of an OPT record without options. */
	OPT = 11,
};

#define IN __builtin_bswap16(1)
#define RD __builtin_bswap16(0x0100)
#define AD __builtin_bswap16(0x0020)

enum { NAME_WORDS = LONGEST_NAME / 8 };

/*
 * A question as the key of an answer. `kind`: type and flags in network order, zeros. The name is in lower case, and only its words
 * count: those up to the root, behind which the last one has zeros.
 */
struct question {
	u64 kind;
	u64 name[NAME_WORDS];
};

/* A place where the server answers: its address (IPv4 as IPv4-mapped), the Ethernet address of the interface, its port
 * in network order. */
struct place {
	u64 address[2];
	u8 ethernet[6];
	u16 port;
};

/*
 * Memory of a processor. The first part is what is known about the query at hand: no variables, so that the verifier does not follow
 * each length of a name. The rest stays from query to query.
 */
struct scratch {
	struct question question;
	/* Octets of the name. */
	u32 length;
	u32 zero;
	/* Sum of all words of query and pseudo-header that are the same in the answer. */
	u64 sum;
	u64 hash;
	/* The last reading of boot_time(), and the tick in which it was made. */
	u64 now;
	u64 tick;
	/* The last places that were found, of IPv4 and IPv6, with their values; 0: none yet. */
	struct {
		struct place place;
		u32 kind;
		u32 zero;
	} found[2];
};

#define ONCE(value) (*(volatile __typeof__(value) *)&(value))

/* Octets of the name with its root, 0 if it is too long or malformed. */
static INLINE u32 read_name_length(const u8 *name, const u8 *end)
{
	u32 at = 0;

	/* A label has two octets or more. */
	for (u32 labels = 0; labels < LONGEST_NAME / 2; labels++) {
		const u8 *label = name + at;

		if (at >= LONGEST_NAME || label + 1 > end)
			return 0;
		u32 octets = *label;
		if (octets == 0)
			return at + 1;
		if (octets > 63)
			return 0;
		at += octets + 1;
	}
	return 0;
}

/*
 * Eight octets of a name with their letters in lower case. Lengths of labels are no letters: they are at most 63. The sums carry into
 * no other octet, and their upper bits say that an octet is at least 'A', and that it is beyond 'Z'.
 */
static INLINE u64 in_lower_case(u64 octets)
{
	const u64 each = 0x0101010101010101ULL;
	u64 low = octets & 0x7f * each;
	u64 is_letter = (low + (0x80 - 'A') * each) & ~(low + (0x7f - 'Z') * each) & ~octets & 0x80 * each;

	return octets | is_letter >> 2;
}

static INLINE u64 hashed(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/*
 * Copies the name in lower case, and sets its length and its hash. The name must have a DNS header before it, and `length` octets and
 * four more. Returns the sum of its octets.
 */
static INLINE u64 read_name(const u8 *name, const u8 *end, u32 length, u64 seed, struct scratch *scratch)
{
	u64 sum = 0, hash = seed;

	for (u32 i = 0; i < NAME_WORDS; i++) {
		const u8 *at = name + 8 * i;
		u64 octets;

		if (8 * i >= length)
			break;
		if (8 * i + 8 <= length) {
			if (at + 8 > end)
				break;
			octets = word64(at);
		} else {
			/* The frame may end behind the name: so the eight octets before that, of which the first ones go. */
			octets = word64(name + length - 8) >> (64 - 8 * (length & 7));
		}
		sum += sum_of_eight(octets);
		octets = in_lower_case(octets);
		scratch->question.name[i] = octets;
		hash = hashed(hash, octets);
	}
	scratch->hash = hash;
	return sum;
}

/* True if an OPT record is that of RFC 6891 with version 0, no flags and no options. */
static INLINE int is_plain_opt(const u8 *opt)
{
	return (opt[0] | word32(opt + 5) | word(opt + 9)) == 0 && word(opt + 1) == __builtin_bswap16(41);
}

enum form {
	OTHER,
	PLAIN,
	/* The worker counts and drops it. */
	DAMAGED,
};

/* Reads the question of a plain query, and verifies the checksums. */
static INLINE enum form read_question(const struct context *context, u32 headers, u64 seed, struct scratch *scratch)
{
	const u8 *start = (const u8 *)(u64)context->data, *end = (const u8 *)(u64)context->data_end;
	const struct udp *udp = (const void *)(start + headers);
	const struct dns *dns = (const void *)(udp + 1);
	const u8 *name = (const void *)(dns + 1);

	if (name > end)
		return OTHER;
	if ((dns->flags & ~AD) != RD || dns->questions != __builtin_bswap16(1) || (dns->answers | dns->authorities) != 0 ||
	    (dns->additional & ~__builtin_bswap16(1)) != 0)
		return OTHER;
	u32 opt = dns->additional ? OPT : 0;
	ONCE(scratch->length) = read_name_length(name, end);
	u32 length = ONCE(scratch->length);
	if (length - 1 >= LONGEST_NAME || __builtin_bswap16(udp->length) != sizeof(*udp) + sizeof(*dns) + length + 4 + opt)
		return OTHER;
	const u8 *type = name + length;
	if (type + 4 > end || word(type + 2) != IN)
		return OTHER;
	u64 addresses = sum_of_addresses(start, headers);
	u64 sum = addresses + udp->source + udp->destination + dns->id + dns->questions;
	sum += sum_at(length, word(type) + word(type + 2));
	u64 rest = (u64)dns->flags + dns->additional + udp->length + udp->length + udp->checksum;
	if (opt) {
		const u8 *record = type + 4;

		if (record + OPT > end || !is_plain_opt(record))
			return OTHER;
		rest += sum_at(length + 1, word(record + 1) + word(record + 3));
	}
	u64 kind = word(type) | (u64)dns->flags << 16;
	sum += read_name(name, end, length, seed, scratch);
	scratch->question.kind = kind;
	scratch->sum = sum;
	if (headers == IPV4_HEADERS && sum_of_ipv4_header(start) != 0xffff)
		return DAMAGED;
	/* Without checksum (IPv4 only), or left to a network card by a sender on this machine, as in src/xdp/frame.rs. */
	if (udp->checksum == 0)
		return headers == IPV4_HEADERS ? PLAIN : DAMAGED;
	if (fold(sum + rest) == 0xffff || fold(addresses + udp->length) == udp->checksum)
		return PLAIN;
	return DAMAGED;
}
