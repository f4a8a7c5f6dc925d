/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sums of octets for the checksums of IPv4 and UDP (RFC 1071), all in network order.
 */

#include "packet.h"

/* Words at any address, in network order. program.rs asks for BPF_F_ANY_ALIGNMENT; a packed structure would be read octet by octet. */
typedef u16 __attribute__((may_alias)) any16;
typedef u32 __attribute__((may_alias)) any32;
typedef u64 __attribute__((may_alias)) any64;

static INLINE u32 word(const void *at)
{
	return *(const any16 *)at;
}

static INLINE u32 word32(const void *at)
{
	return *(const any32 *)at;
}

static INLINE u64 word64(const void *at)
{
	return *(const any64 *)at;
}

static INLINE void put(void *at, u16 value)
{
	*(any16 *)at = value;
}

static INLINE void put32(void *at, u32 value)
{
	*(any32 *)at = value;
}

static INLINE void put64(void *at, u64 value)
{
	*(any64 *)at = value;
}

/* The ones' complement sum of 16 bits (RFC 1071). It does not depend on the order of octets, so network order stays. */
static INLINE u32 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/*
 * The sum of octets that begin at an offset, less than 2^56: the octets of a word change their places if the offset is odd. That is a
 * multiplication by 256, because the sum counts modulo 65,535.
 */
static INLINE u64 sum_at(u32 offset, u64 sum)
{
	return offset & 1 ? sum << 8 : sum;
}

/* Sum of eight octets. */
static INLINE u64 sum_of_eight(u64 octets)
{
	return (octets & 0xffffffff) + (octets >> 32);
}

/* Sum of the pseudo-header without the length of the datagram. */
static INLINE u64 sum_of_addresses(const u8 *start, u32 headers)
{
	const struct ipv4 *ipv4 = (const void *)(start + sizeof(struct ethernet));
	const struct ipv6 *ipv6 = (const void *)ipv4;
	u64 sum = __builtin_bswap16(UDP);

	if (headers == IPV4_HEADERS)
		return sum + word32(ipv4->source) + word32(ipv4->destination);
	return sum + sum_of_eight(word64(ipv6->source)) + sum_of_eight(word64(ipv6->source + 8)) +
	       sum_of_eight(word64(ipv6->destination)) + sum_of_eight(word64(ipv6->destination + 8));
}

static INLINE u32 sum_of_ipv4_header(const u8 *start)
{
	const u8 *header = start + sizeof(struct ethernet);
	u64 sum = 0;

#pragma unroll
	for (u32 i = 0; i < sizeof(struct ipv4); i += 4)
		sum += word32(header + i);
	return fold(sum);
}
