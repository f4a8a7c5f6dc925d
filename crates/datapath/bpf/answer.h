/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packet cache: answers to the questions that are asked most often, given here without waking anybody. The workers write it
 * (src/xdp/packet_cache.rs); the program only reads it, and counts what it has answered.
 *
 * A question is answered here if it is plain: RD, perhaps AD, no other flag, one question, no record but an OPT record without
 * DO and without options, nothing behind it. The answer has the question as the client wrote it, the records with their TTLs
 * lowered by the seconds since they were stored, and the client's OPT record with our size. So it is the same, octet for octet,
 * as that of the worker.
 *
 * An extended error of the answer, for example that addresses are synthesized, goes into the OPT record, as always.
 *
 * All maps but one are arrays that the workers have mapped, so that no system call is needed while the server runs. A slot that
 * was withdrawn is not written again for a second, in which no run of this program can still read it.
 */

enum {
	NO_ANSWER = -1,
	/* The query is not plain, or not looked at. */
	NOT_PLAIN = -2,
	/* Octets of the longest name, with the root. */
	LONGEST_NAME = 64,
	/* Octets of all records of an answer: the whole message has at most 505. */
	LONGEST_RECORDS = 408,
	MOST_TTLS = 12,
	SLOTS = 4096,
	SETS = 1024,
	WAYS = 8,
	NETWORKS = 256,
	/* Octets of an OPT record without options, and of the option with an extended error. */
	OPT = 11,
	EDE = 6,
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
	/* Octets of the records, the number of their TTLs, and the sum of the octets without the TTLs. */
	u16 length;
	u16 ttls;
	u16 sum;
	/* The extended error (RFC 8914) in an OPT record, if there is one. */
	u16 ede;
	u16 has_ede;
	u32 zero;
	struct question question;
	struct {
		u32 seconds;
		/* From the begin of the records. */
		u32 offset;
	} ttl[MOST_TTLS];
	u8 records[LONGEST_RECORDS];
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

/* What is known about the query at hand. It is no variable, so that the verifier does not follow each length of a name. */
struct scratch {
	struct question question;
	/* Octets of the name. */
	u32 length;
	u32 zero;
	/* Sum of all words of query and pseudo-header that are the same in the answer. */
	u64 sum;
};

#define CONTROL ((void *)0x736978666374726cULL)
#define INDEX ((void *)0x73697866696e6478ULL)
#define ANSWERS ((void *)0x73697866616e7377ULL)
#define HITS ((void *)0x7369786668697473ULL)
#define SCRATCH ((void *)0x7369786673637261ULL)

#define ONCE(value) (*(volatile __typeof__(value) *)&(value))

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

/* The number of the slot of a question, plus 1; 0 if there is none. */
static INLINE u32 find(const struct scratch *scratch, u64 hash)
{
	const u64 *words = (const u64 *)&scratch->question;

#pragma unroll
	for (u32 i = 0; i < QUESTION_WORDS; i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
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

static INLINE int is_question(const struct answer *answer, const struct scratch *scratch)
{
	const u64 *one = (const u64 *)&answer->question, *other = (const u64 *)&scratch->question;
	u64 difference = 0;

#pragma unroll
	for (u32 i = 0; i < QUESTION_WORDS; i++)
		difference |= one[i] ^ other[i];
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
		for (u32 i = 0; i < 4; i++)
			address[1] = address[1] << 8 | ipv4->source[i];
	} else {
		for (u32 i = 0; i < 8; i++) {
			address[0] = address[0] << 8 | ipv6->source[i];
			address[1] = address[1] << 8 | ipv6->source[i + 8];
		}
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
		__builtin_memcpy(records + 8 * i, answer->records + 8 * i, 8);
	}
	/* The last octets, some of which stand there already. */
	u32 last = length - 8;
	if (last > LONGEST_RECORDS - 8 || records + last + 8 > end)
		return sum;
	__builtin_memcpy(records + last, answer->records + last, 8);
	for (u32 i = 0; i < MOST_TTLS; i++) {
		u32 offset = answer->ttl[i].offset, ttl = answer->ttl[i].seconds;

		if (i >= answer->ttls || offset > LONGEST_RECORDS - 4 || records + offset + 4 > end)
			break;
		ttl = __builtin_bswap32(ttl > elapsed ? ttl - elapsed : 0);
		put(records + offset, ttl & 0xffff);
		put(records + offset + 2, ttl >> 16);
		sum += sum_at(offset, (u64)(ttl & 0xffff) + (ttl >> 16));
	}
	return sum;
}

/* Writes the OPT record (RFC 6891 section 6.1.2), and adds it to the sum. Returns its octets, 0 if there is no room. */
static INLINE u32 write_opt(u8 *opt, const u8 *end, const struct answer *answer, u32 offset, u64 *sum)
{
	u64 words = (u64)__builtin_bswap16(41) + answer->udp_size;

	if (opt + OPT > end)
		return 0;
	__builtin_memset(opt, 0, OPT);
	put(opt + 1, __builtin_bswap16(41));
	put(opt + 3, answer->udp_size);
	if (!answer->has_ede) {
		*sum += sum_at(offset + 1, words);
		return OPT;
	}
	if (opt + OPT + EDE > end)
		return 0;
	put(opt + 9, __builtin_bswap16(EDE));
	put(opt + 11, __builtin_bswap16(15));
	put(opt + 13, __builtin_bswap16(2));
	put(opt + 15, answer->ede);
	words += (u64)__builtin_bswap16(EDE) + __builtin_bswap16(15) + __builtin_bswap16(2) + answer->ede;
	*sum += sum_at(offset + 1, words);
	return OPT + EDE;
}

/* Turns the Ethernet and IP headers round. `length`: octets of the UDP datagram. */
static INLINE void write_headers(u8 *start, u32 headers, u32 length)
{
	struct ethernet *ethernet = (void *)start;
	struct ipv4 *ipv4 = (void *)(ethernet + 1);
	struct ipv6 *ipv6 = (void *)(ethernet + 1);
	u8 address[16];

	__builtin_memcpy(address, ethernet->destination, 6);
	__builtin_memcpy(ethernet->destination, ethernet->source, 6);
	__builtin_memcpy(ethernet->source, address, 6);
	if (headers == IPV4_HEADERS) {
		__builtin_memcpy(address, ipv4->source, 4);
		__builtin_memcpy(ipv4->source, ipv4->destination, 4);
		__builtin_memcpy(ipv4->destination, address, 4);
		ipv4->service = 0;
		ipv4->total_length = __builtin_bswap16(sizeof(*ipv4) + length);
		ipv4->identification = random_u32();
		ipv4->fragment = 0;
		ipv4->hops = 64;
		ipv4->checksum = 0;
		ipv4->checksum = ~sum_of_ipv4_header(start);
	} else {
		__builtin_memcpy(address, ipv6->source, 16);
		__builtin_memcpy(ipv6->source, ipv6->destination, 16);
		__builtin_memcpy(ipv6->destination, address, 16);
		ipv6->version_and_class = 0x60;
		__builtin_memset(ipv6->class_and_flow, 0, 3);
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
	u16 port = udp->source;
	udp->source = udp->destination;
	udp->destination = port;
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

/* Answers the query of the frame, whose headers were checked. Returns NO_ANSWER or NOT_PLAIN if the frame is as it was. With
 * `must_tell`, queries are looked at in any case. */
static INLINE int answer(struct context *context, u32 headers, u32 must_tell)
{
	const u32 zero = 0;
	struct scratch *scratch = map_lookup(SCRATCH, &zero);
	const struct control *control = map_lookup(CONTROL, &zero);

	if (!scratch || !control)
		return NOT_PLAIN;
	u32 generation = ONCE(control->generation);
	if (generation == 0 && !must_tell)
		return NOT_PLAIN;
	enum form form = read_question(context, headers, scratch);
	if (form == OTHER)
		return NOT_PLAIN;
	if (form == DAMAGED || generation == 0)
		return NO_ANSWER;
	u32 slot = find(scratch, control->seed) - 1;
	const struct answer *answer = map_lookup(ANSWERS, &slot);
	if (!answer || !is_question(answer, scratch) || answer->generation != generation)
		return NO_ANSWER;
	u64 now = boot_time(), stored = ONCE(answer->stored);
	if (now >= answer->until || now < stored || !is_allowed(context, headers, control, ONCE(scratch->zero)))
		return NO_ANSWER;
	u32 sequence = ONCE(answer->sequence), length = ONCE(answer->length);
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
