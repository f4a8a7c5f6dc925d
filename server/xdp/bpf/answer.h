/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packet cache: answers to the questions that are asked most often, given here without waking anybody. The workers write it
 * (src/af_xdp/packet_cache.rs); the program only reads it, and counts what it has answered.
 *
 * A query is answered here if it has RD, perhaps AD, no other flag, one question, no record but an OPT record without
 * DO and without options, nothing behind it. The answer has the question as the client wrote it, the records with their TTLs
 * lowered by the seconds since they were stored, and the client's OPT record with our size. So it is the same, octet for octet,
 * as that of the worker.
 *
 * An extended error of the answer, for example that addresses are synthesized, goes into the OPT record, as always.
 *
 * The workers have mapped the arrays of control record, index, answers and hits, so that no system call is needed while the server runs. A slot that
 * was withdrawn is not written again for a second, in which no run of this program can still read it.
 */

#include "query.h"

enum {
	NO_ANSWER = -1,
	/* The query is not plain, or not looked at. */
	NOT_PLAIN = -2,
	/* Octets of all records of an answer: the whole message has at most 505. */
	LONGEST_RECORDS = 408,
	MOST_TTLS = 12,
	SLOTS = 4096,
	SETS = 1024,
	WAYS = 8,
	NETWORKS = 256,
	/* Octets of the option with an extended error. */
	EDE = 6,
};

/* A published answer. `sum`, `flags`, `counts`, `udp_size` and `ede` are in network order. */
struct answer {
	/* End, and begin of the TTLs, in nanoseconds of boot_time(). */
	u64 until;
	u64 stored;
	/* Counts the uses of the slot. */
	u32 sequence;
	/* The generation for which the answer holds. */
	u32 generation;
	u16 flags;
	u16 counts[3];
	u16 udp_size;
	/* Octets of the records, the number of their TTLs, and the sum of the other octets. */
	u16 length;
	u16 ttls;
	u16 sum;
	/* The extended error (RFC 8914) in an OPT record, if there is one. */
	u16 ede;
	u16 has_ede;
	u32 zero;
	/* Places of the TTLs, from the begin of the records. */
	u16 ttl[MOST_TTLS];
	/* Here and before, all that is read of an answer but its records: they lie in as few cache lines as possible. */
	struct question question;
	/* With the TTLs as they were stored. */
	u8 records[LONGEST_RECORDS];
	/* An answer begins with a cache line. */
	u8 filling[24];
};

/* Places of answers: the upper 48 bits of the hash of the question, and the number of the slot plus 1. */
struct set {
	u64 ways[WAYS];
};

struct control {
	/* Generation of the answers that hold; 0: none. */
	u32 generation;
	/* Number of networks. */
	u32 networks;
	/* Secret key of the hash. */
	u64 seed;
	/* Clients that may be answered: ranges of addresses, which do not overlap, in ascending order; IPv4 as IPv4-mapped. */
	struct {
		u64 first[2];
		u64 last[2];
	} network[NETWORKS];
};

/* Answers given, by the processor that gave them: IPv4 without and with OPT record, IPv6 likewise. */
struct hits {
	u64 number[4];
};

#define CONTROL ((void *)0x736978666374726cULL)
#define INDEX ((void *)0x73697866696e6478ULL)
#define ANSWERS ((void *)0x73697866616e7377ULL)
#define HITS ((void *)0x7369786668697473ULL)
#define SCRATCH ((void *)0x7369786673637261ULL)

/* The number of the slot of a question, plus 1; 0 if there is none. */
static INLINE u32 find(const struct scratch *scratch)
{
	u64 hash = hashed(scratch->hash, scratch->question.kind);
	u32 number = hash & (SETS - 1);
	const struct set *set = map_lookup(INDEX, &number);

	if (!set)
		return 0;
	for (u32 i = 0; i < WAYS; i++) {
		u64 way = ONCE(set->ways[i]);

		if ((way ^ hash) >> 16 == 0)
			return way & 0xffff;
	}
	return 0;
}

/* True if the answer is that to the question. Names whose words are alike up to a root are the same. */
static INLINE int is_question(const struct answer *answer, const struct scratch *scratch)
{
	u64 difference = answer->question.kind ^ scratch->question.kind;
	u32 length = ONCE(scratch->length);

	for (u32 i = 0; i < NAME_WORDS; i++) {
		if (8 * i >= length)
			break;
		difference |= answer->question.name[i] ^ scratch->question.name[i];
	}
	return difference == 0;
}

/* True if the address comes before another one, or is the same. */
static INLINE int is_up_to(const u64 *one, const u64 *other)
{
	return one[0] < other[0] || (one[0] == other[0] && one[1] <= other[1]);
}

/* True if the client may be answered: its address lies in the last network that begins before it. */
static INLINE int is_allowed(const struct context *context, u32 headers, const struct control *control, u32 zero)
{
	const u8 *start = (const u8 *)(u64)context->data, *end = (const u8 *)(u64)context->data_end;
	const struct ipv4 *ipv4 = (const void *)(start + sizeof(struct ethernet));
	const struct ipv6 *ipv6 = (const void *)ipv4;
	u64 address[2] = { 0, 0xffff };
	u32 count = ONCE(control->networks), below = zero;

	if (start + headers > end || count > NETWORKS)
		return 0;
	if (headers == IPV4_HEADERS) {
		address[1] = address[1] << 32 | __builtin_bswap32(word32(ipv4->source));
	} else {
		address[0] = __builtin_bswap64(word64(ipv6->source));
		address[1] = __builtin_bswap64(word64(ipv6->source + 8));
	}
	for (u32 step = NETWORKS / 2; step > 0; step >>= 1) {
		u32 next = (below + step) & (2 * NETWORKS - 1);

		if (next <= count && next - 1 < NETWORKS && is_up_to(control->network[next - 1].first, address))
			below = next;
	}
	return below - 1 < NETWORKS && is_up_to(address, control->network[below - 1].last);
}

/* Writes the records behind the question, and lowers their TTLs. Returns their sum, as at an even offset. */
static INLINE u64 write_records(u8 *records, const u8 *end, const struct answer *answer, u32 length, u32 elapsed)
{
	u64 sum = answer->sum;

	if (length < 8 || length > LONGEST_RECORDS)
		return sum;
	for (u32 i = 0; i < LONGEST_RECORDS / 8; i++) {
		if (8 * i + 8 > length || records + 8 * i + 8 > end)
			break;
		put64(records + 8 * i, word64(answer->records + 8 * i));
	}
	/* The last octets, some of which stand there already. */
	u32 last = length - 8;
	if (last > LONGEST_RECORDS - 8 || records + last + 8 > end)
		return sum;
	put64(records + last, word64(answer->records + last));
	for (u32 i = 0; i < MOST_TTLS; i++) {
		u32 offset = answer->ttl[i];

		if (i >= answer->ttls || offset > LONGEST_RECORDS - 4 || records + offset + 4 > end)
			break;
		u32 ttl = __builtin_bswap32(word32(answer->records + offset));
		ttl = __builtin_bswap32(ttl > elapsed ? ttl - elapsed : 0);
		put32(records + offset, ttl);
		sum += sum_at(offset, ttl);
	}
	return sum;
}

/* Writes the OPT record (RFC 6891 section 6.1.2), and adds it to the sum. Returns its octets, 0 if there is no room. */
static INLINE u32 write_opt(u8 *opt, const u8 *end, const struct answer *answer, u32 offset, u64 *sum)
{
	const u64 type = __builtin_bswap16(41);
	u64 ede = (u64)answer->ede << 48 | (u64)__builtin_bswap16(2) << 32 | (u64)__builtin_bswap16(15) << 16 | __builtin_bswap16(EDE);

	if (opt + OPT > end)
		return 0;
	/* Root, type, size, extended RCODE and flags; and the length of the options. */
	put64(opt, (u64)answer->udp_size << 24 | type << 8);
	opt[8] = 0;
	put(opt + 9, 0);
	*sum += sum_at(offset + 1, type + answer->udp_size);
	if (!answer->has_ede)
		return OPT;
	if (opt + OPT + EDE > end)
		return 0;
	put64(opt + 9, ede);
	*sum += sum_at(offset + 1, sum_of_eight(ede));
	return OPT + EDE;
}

/* Turns the Ethernet and IP headers round. `length`: octets of the UDP datagram. */
static INLINE void write_headers(u8 *start, u32 headers, u32 length)
{
	struct ethernet *ethernet = (void *)start;
	struct ipv4 *ipv4 = (void *)(ethernet + 1);
	struct ipv6 *ipv6 = (void *)(ethernet + 1);
	u32 destination = word32(ethernet->destination), last = word(ethernet->destination + 4);

	put32(ethernet->destination, word32(ethernet->source));
	put(ethernet->destination + 4, word(ethernet->source + 4));
	put32(ethernet->source, destination);
	put(ethernet->source + 4, last);
	if (headers == IPV4_HEADERS) {
		u32 source = word32(ipv4->source), identification = random_u32() & 0xffff;

		destination = word32(ipv4->destination);
		/* Version, length of the header, type of service, length; identification, no fragment; 64 hops, UDP. */
		u32 first = 0x45 | (u32)__builtin_bswap16(sizeof(*ipv4) + length) << 16, third = 64 | UDP << 8;
		u32 checksum = ~fold((u64)first + identification + third + source + destination) & 0xffff;
		put32(&ipv4->version_and_length, first);
		put32(&ipv4->identification, identification);
		put32(&ipv4->hops, third | checksum << 16);
		put32(ipv4->source, destination);
		put32(ipv4->destination, source);
	} else {
		u64 source[2] = { word64(ipv6->source), word64(ipv6->source + 8) };

		put64(ipv6->source, word64(ipv6->destination));
		put64(ipv6->source + 8, word64(ipv6->destination + 8));
		put64(ipv6->destination, source[0]);
		put64(ipv6->destination + 8, source[1]);
		put32(&ipv6->version_and_class, 0x60);
		ipv6->payload_length = __builtin_bswap16(length);
		ipv6->hops = 64;
	}
}

/* Writes the answer over the query, for which the frame has its new length. Returns 0 if that failed. */
static INLINE int write_answer(const struct context *context, u32 headers, const struct answer *answer, u32 records_length,
			       u32 elapsed, const struct scratch *scratch)
{
	u8 *start = (u8 *)(u64)context->data, *end = (u8 *)(u64)context->data_end;
	struct udp *udp = (void *)(start + headers);
	struct dns *dns = (void *)(udp + 1);
	u8 *name = (void *)(dns + 1);
	u32 name_length = ONCE(scratch->length);

	if (name > end || name_length - 1 >= LONGEST_NAME)
		return 0;
	u32 has_opt = dns->additional != 0, length = sizeof(*udp) + sizeof(*dns) + name_length + 4 + records_length;
	u8 *records = name + name_length + 4;
	u64 sum = scratch->sum + sum_at(name_length, write_records(records, end, answer, records_length, elapsed));
	if (has_opt) {
		if (records_length > LONGEST_RECORDS)
			return 0;
		u32 opt_length = write_opt(records + records_length, end, answer, name_length + records_length, &sum);
		if (opt_length == 0)
			return 0;
		length += opt_length;
	}
	dns->flags = answer->flags;
	dns->answers = answer->counts[0];
	dns->authorities = answer->counts[1];
	dns->additional = __builtin_bswap16(__builtin_bswap16(answer->counts[2]) + has_opt);
	sum += (u64)dns->flags + dns->answers + dns->authorities + dns->additional;
	u32 ports = word32(&udp->source);
	put32(&udp->source, ports << 16 | ports >> 16);
	udp->length = __builtin_bswap16(length);
	u16 checksum = ~fold(sum + udp->length + udp->length);
	udp->checksum = checksum ? checksum : 0xffff;
	write_headers(start, headers, length);
	return 1;
}

static INLINE void count_hit(u32 slot, u32 which)
{
	u32 place = processor() * SLOTS + slot;
	struct hits *hits = map_lookup(HITS, &place);

	if (hits)
		hits->number[which & 3]++;
}

/* The time of the tick: a reading of the clock costs a fifth of an answer, and an answer may end, and its TTLs fall, 10 ms late. */
static INLINE u64 time_of_tick(struct scratch *scratch)
{
	u64 tick = ticks();

	if (scratch->tick != tick || scratch->now == 0) {
		scratch->now = boot_time();
		scratch->tick = tick;
	}
	return scratch->now;
}

/* Answers the query of the frame, whose headers were checked. Returns NO_ANSWER or NOT_PLAIN if the frame is as it was. With
 * `must_tell`, queries are looked at in any case. */
static INLINE int answer(struct context *context, u32 headers, u32 must_tell, struct scratch *scratch)
{
	const u32 zero = 0;
	const struct control *control = map_lookup(CONTROL, &zero);

	if (!control)
		return NOT_PLAIN;
	u32 generation = ONCE(control->generation);
	if (generation == 0 && !must_tell)
		return NOT_PLAIN;
	enum form form = read_question(context, headers, control->seed, scratch);
	if (form == OTHER)
		return NOT_PLAIN;
	if (form == DAMAGED || generation == 0)
		return NO_ANSWER;
	u32 slot = find(scratch) - 1;
	const struct answer *answer = map_lookup(ANSWERS, &slot);
	if (!answer)
		return NO_ANSWER;
	/* Before all else of the slot, which may get another answer at any time. It is odd while that is written. */
	u32 sequence = ONCE(answer->sequence);
	if (sequence & 1 || !is_question(answer, scratch) || answer->generation != generation)
		return NO_ANSWER;
	u64 now = time_of_tick(scratch), stored = ONCE(answer->stored);
	if (now >= answer->until || now < stored || !is_allowed(context, headers, control, ONCE(scratch->zero)))
		return NO_ANSWER;
	u32 length = ONCE(answer->length);
	u32 elapsed = (now - stored) / 1000000000;
	const u8 *start = (const u8 *)(u64)context->data, *end = (const u8 *)(u64)context->data_end;
	const struct udp *udp = (const void *)(start + headers);
	if (length > LONGEST_RECORDS || (const u8 *)(udp + 1) > end)
		return NO_ANSWER;
	u32 octets = __builtin_bswap16(udp->length);
	u32 has_opt = octets > sizeof(*udp) + sizeof(struct dns) + ONCE(scratch->length) + 4;
	octets += headers + length + (has_opt && answer->has_ede ? EDE : 0);
	/* The frame of a short query may be filled up behind it. */
	if (adjust_tail(context, (int)octets - (int)(end - start)) != 0)
		return NO_ANSWER;
	if (!write_answer(context, headers, answer, length, elapsed, scratch) || ONCE(answer->sequence) != sequence)
		return XDP_DROP;
	count_hit(slot, (headers == IPV6_HEADERS) * 2 + has_opt);
	return XDP_TX;
}
