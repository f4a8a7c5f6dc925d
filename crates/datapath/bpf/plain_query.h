/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Plain queries: those that the packet cache may answer (answer.h). message/plain_query.rs of the engine has the same conditions.
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

/* A question as the key of an answer: name in lower case, filled up with zeros; type and flags in network order. */
struct question {
	u8 name[LONGEST_NAME];
	u16 type;
	u16 flags;
	u32 zero;
};

enum { QUESTION_WORDS = sizeof(struct question) / 8 };

/* What is known about the query at hand. It is no variable, so that the verifier does not follow each length of a name. */
struct scratch {
	struct question question;
	/* Octets of the name. */
	u32 length;
	u32 zero;
	/* Sum of all words of query and pseudo-header that are the same in the answer. */
	u64 sum;
};

#define ONCE(value) (*(volatile __typeof__(value) *)&(value))

/* Copies the name in lower case. Sets its length, 0 if it is too long or malformed, and returns the sum of its octets. */
static INLINE u64 read_name(const u8 *name, const u8 *end, struct scratch *scratch)
{
	u64 *words = (u64 *)&scratch->question, sum = 0;
	u32 left = 0;

#pragma unroll
	for (u32 i = 0; i < QUESTION_WORDS; i++)
		words[i] = 0;
	ONCE(scratch->length) = 0;
	for (u32 i = 0; i < LONGEST_NAME; i++) {
		if (name + i + 1 > end)
			break;
		u32 octet = name[i];
		sum += octet_at(i, octet);
		if (left == 0) {
			if (octet == 0)
				ONCE(scratch->length) = i + 1;
			if (octet == 0 || octet > 63)
				break;
			left = octet;
		} else {
			left--;
			if (octet - 'A' < 26)
				octet |= 0x20;
		}
		scratch->question.name[i] = octet;
	}
	return sum;
}

/* True if an OPT record is that of RFC 6891 with version 0, no flags and no options. */
static INLINE int is_plain_opt(const u8 *opt)
{
	return (opt[0] | word(opt + 5) | word(opt + 7) | word(opt + 9)) == 0 && word(opt + 1) == __builtin_bswap16(41);
}

enum form {
	OTHER,
	PLAIN,
	/* The worker counts and drops it. */
	DAMAGED,
};

/* Reads the question of a plain query, and verifies the checksums. */
static INLINE enum form read_question(const struct context *context, u32 headers, struct scratch *scratch)
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
	u64 sum = sum_of_addresses(start, headers) + udp->source + udp->destination + dns->id + dns->questions;
	sum += read_name(name, end, scratch);
	u32 length = ONCE(scratch->length);
	if (length - 1 >= LONGEST_NAME || __builtin_bswap16(udp->length) != sizeof(*udp) + sizeof(*dns) + length + 4 + opt)
		return OTHER;
	const u8 *type = name + length;
	if (type + 4 > end || word(type + 2) != IN)
		return OTHER;
	scratch->question.type = word(type);
	scratch->question.flags = dns->flags;
	sum += sum_at(length, word(type) + word(type + 2));
	scratch->sum = sum;
	u64 rest = dns->flags + dns->additional + udp->length + udp->length + udp->checksum;
	if (opt) {
		const u8 *record = type + 4;

		if (record + OPT > end || !is_plain_opt(record))
			return OTHER;
		rest += sum_at(length, octet_at(0, record[0]) + octet_at(1, record[1]) + octet_at(2, record[2]) +
					       octet_at(3, record[3]) + octet_at(4, record[4]));
	}
	if (headers == IPV4_HEADERS && sum_of_ipv4_header(start) != 0xffff)
		return DAMAGED;
	/* Without checksum (IPv4 only), or left to a network card by a sender on this machine, as in src/xdp/frame.rs. */
	if (udp->checksum == 0)
		return headers == IPV4_HEADERS ? PLAIN : DAMAGED;
	if (fold(sum + rest) == 0xffff || fold(sum_of_addresses(start, headers) + udp->length) == udp->checksum)
		return PLAIN;
	return DAMAGED;
}
