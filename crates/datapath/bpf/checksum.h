/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sums of octets for the checksums of IPv4 and UDP (RFC 1071), all in network order.
 */

#include "packet.h"

/* Two octets at any address, in network order. */
struct word {
	u16 value;
} __attribute__((packed));

static INLINE u32 word(const u8 *at)
{
	return ((const struct word *)at)->value;
}

static INLINE void put(u8 *at, u16 value)
{
	((struct word *)at)->value = value;
}

/* The ones' complement sum of 16 bits (RFC 1071). It does not depend on the order of octets, so network order stays. */
static INLINE u32 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The sum of octets that begin at an offset: the octets of a word change their places if it is odd. */
static INLINE u32 sum_at(u32 offset, u64 sum)
{
	u16 folded = fold(sum);

	return offset & 1 ? __builtin_bswap16(folded) : folded;
}

/* One octet at an even or odd offset as a part of a word in network order. */
static INLINE u32 octet_at(u32 offset, u32 octet)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	offset++;
#endif
	return offset & 1 ? octet << 8 : octet;
}

/* Sum of the pseudo-header without the length of the datagram. */
static INLINE u64 sum_of_addresses(const u8 *start, u32 headers)
{
	const struct ipv4 *ipv4 = (const void *)(start + sizeof(struct ethernet));
	const struct ipv6 *ipv6 = (const void *)ipv4;
	const u16 *words = headers == IPV4_HEADERS ? (const u16 *)ipv4->source : (const u16 *)ipv6->source;
	u32 count = headers == IPV4_HEADERS ? 4 : 16;
	u64 sum = __builtin_bswap16(UDP);

	for (u32 i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

static INLINE u32 sum_of_ipv4_header(const u8 *start)
{
	const u16 *words = (const u16 *)(start + sizeof(struct ethernet));
	u64 sum = 0;

	for (u32 i = 0; i < sizeof(struct ipv4) / 2; i++)
		sum += words[i];
	return fold(sum);
}
