// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * XDP program: answers the DNS queries that came over UDP to our addresses out of the packet cache (answer.h), or hands them to
 * the AF_XDP socket of their receive queue. Everything else goes to the kernel untouched (XDP_PASS): other protocols, VLAN tags,
 * IP options, extension headers, fragments, lengths that do not fit, sources that no packet may have, addresses and ports that
 * are not ours, and queues without a socket.
 *
 * The checksums of queries for the socket are not verified here: the worker does that, and drops what fails, as the kernel would.
 *
 * src/xdp/frame.rs checks the same conditions once more, with the same numbers.
 *
 * The program needs no header and no library. Its maps are written as constants of 64 bits, in whose places
 * src/xdp/program.rs puts the descriptors of the maps before it loads the program.
 */

#include "packet.h"

enum {
	/* Longer frames might not fit into the buffers of the AF_XDP sockets: 2,048 octets, of which the kernel takes 256. */
	LONGEST_FRAME = 1536,
	/*
	 * The value of a place of a program in generic mode: a frame may be several datagrams there, which a sender on this machine has
	 * left to a network card to take apart (UDP_SEGMENT). Their message would have more octets than a query. So only plain queries
	 * go to the AF_XDP socket, whose end is known. The kernel takes the others apart.
	 */
	ONLY_PLAIN = 2,
};

/* The stand-ins of the maps; `program.rs` knows them. */
#define SOCKETS ((void *)0x7369786673636b74ULL)
#define PLACES ((void *)0x73697866706c6365ULL)

char _license[] __attribute__((section("license"), used)) = "Dual MIT/GPL";

#include "answer.h"

/* The value of a place, 0 if the server does not answer there. Most frames are for the same place as those before. */
static INLINE u32 kind_of(const struct place *place, u32 headers, struct scratch *scratch)
{
	u32 family = headers == IPV6_HEADERS;
	const u64 *wanted = (const u64 *)place;
	u64 *last = (u64 *)&scratch->found[family].place;

	if (scratch->found[family].kind != 0 && last[0] == wanted[0] && last[1] == wanted[1] && last[2] == wanted[2])
		return scratch->found[family].kind;
	const u32 *kind = map_lookup(PLACES, place);
	if (!kind)
		return 0;
	for (u32 i = 0; i < sizeof(*place) / 8; i++)
		last[i] = wanted[i];
	scratch->found[family].kind = *kind;
	return *kind;
}

static INLINE int serve(struct context *context, const struct place *place, u32 headers)
{
	const u32 zero = 0;
	struct scratch *scratch = map_lookup(SCRATCH, &zero);

	if (!scratch)
		return XDP_PASS;
	u32 kind = kind_of(place, headers, scratch);
	if (kind == 0)
		return XDP_PASS;
	u32 only_plain = kind == ONLY_PLAIN;
	int verdict = answer(context, headers, only_plain, scratch);
	if (verdict >= 0)
		return verdict;
	if (verdict == NOT_PLAIN && only_plain)
		return XDP_PASS;
	return redirect_map(SOCKETS, context->rx_queue_index, XDP_PASS);
}

/* True if the UDP header agrees with `length`, the octets after the IP header. */
static INLINE int udp_fits(const struct udp *udp, u32 length)
{
	return __builtin_bswap16(udp->length) == length && length >= sizeof(struct udp) + SHORTEST_MESSAGE &&
	       udp->source != 0;
}

static INLINE int ipv4(struct context *context, const u8 *start, const u8 *end, struct place *place)
{
	const struct ipv4 *ip = (const void *)start;
	const struct udp *udp = (const void *)(ip + 1);

	if ((const u8 *)(udp + 1) > end)
		return XDP_PASS;
	u32 length = __builtin_bswap16(ip->total_length);
	/* DF is the only bit of the fragment field that may be set. */
	if (ip->version_and_length != 0x45 || ip->protocol != UDP || (ip->fragment & ~__builtin_bswap16(0x4000)) != 0 ||
	    length < sizeof(*ip) || length > LONGEST_FRAME || start + length > end)
		return XDP_PASS;
	/* Networks 0 and 127, groups, the reserved addresses and the broadcast address send nothing. */
	if (ip->source[0] == 0 || ip->source[0] == 127 || ip->source[0] >= 224)
		return XDP_PASS;
	if (!udp_fits(udp, length - sizeof(*ip)))
		return XDP_PASS;
	place->address[1] = (u64)word32(ip->destination) << 32 | 0xffff0000;
	place->port = udp->destination;
	return serve(context, place, IPV4_HEADERS);
}

static INLINE int ipv6(struct context *context, const u8 *start, const u8 *end, struct place *place)
{
	const struct ipv6 *ip = (const void *)start;
	const struct udp *udp = (const void *)(ip + 1);
	if ((const u8 *)(udp + 1) > end)
		return XDP_PASS;
	u32 length = __builtin_bswap16(ip->payload_length);
	if ((ip->version_and_class & 0xf0) != 0x60 || ip->next_header != UDP ||
	    length > LONGEST_FRAME || (const u8 *)udp + length > end || !udp_fits(udp, length))
		return XDP_PASS;
	/* Groups, and ::/64 with the unspecified, loopback and IPv4-mapped addresses, send nothing. */
	if (ip->source[0] == 0xff || word64(ip->source) == 0)
		return XDP_PASS;
	place->address[0] = word64(ip->destination);
	place->address[1] = word64(ip->destination + 8);
	place->port = udp->destination;
	return serve(context, place, IPV6_HEADERS);
}

__attribute__((section("xdp"), used)) int steer(struct context *context)
{
	const u8 *start = (const u8 *)(u64)context->data;
	const u8 *end = (const u8 *)(u64)context->data_end;
	const struct ethernet *ethernet = (const void *)start;
	struct place place = {};

	if ((const u8 *)(ethernet + 1) > end || start + LONGEST_FRAME + 1 <= end)
		return XDP_PASS;
	/* The place has our Ethernet address, so a frame to a group or to another host finds none. An answer cannot go to a
	 * group either. */
	if (ethernet->source[0] & 1)
		return XDP_PASS;
	put32(place.ethernet, word32(ethernet->destination));
	put(place.ethernet + 4, word(ethernet->destination + 4));
	if (ethernet->type == ETHERTYPE_IPV4)
		return ipv4(context, start + sizeof(*ethernet), end, &place);
	if (ethernet->type == ETHERTYPE_IPV6)
		return ipv6(context, start + sizeof(*ethernet), end, &place);
	return XDP_PASS;
}
