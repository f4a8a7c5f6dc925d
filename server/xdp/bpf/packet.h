/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packet formats, and the part of the kernel's interface that the XDP program uses, so that it needs no other header.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* Headers begin at even addresses. */
#define HALFWORDS __attribute__((packed, aligned(2)))

/* struct xdp_md of include/uapi/linux/bpf.h. */
struct context {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
};

#define INLINE __attribute__((always_inline)) inline

struct ethernet {
	u8 destination[6];
	u8 source[6];
	u16 type;
} HALFWORDS;

struct ipv4 {
	u8 version_and_length;
	u8 service;
	u16 total_length;
	u16 identification;
	u16 fragment;
	u8 hops;
	u8 protocol;
	u16 checksum;
	u8 source[4];
	u8 destination[4];
} HALFWORDS;

struct ipv6 {
	u8 version_and_class;
	u8 class_and_flow[3];
	u16 payload_length;
	u8 next_header;
	u8 hops;
	u8 source[16];
	u8 destination[16];
} HALFWORDS;

struct udp {
	u16 source;
	u16 destination;
	u16 length;
	u16 checksum;
} HALFWORDS;

struct dns {
	u16 id;
	u16 flags;
	u16 questions;
	u16 answers;
	u16 authorities;
	u16 additional;
} HALFWORDS;

enum {
	XDP_DROP = 1,
	XDP_PASS = 2,
	XDP_TX = 3,
	UDP = 17,
	/* A UDP datagram must hold a DNS header. */
	SHORTEST_MESSAGE = sizeof(struct dns),
	/* Octets in front of the UDP header. */
	IPV4_HEADERS = sizeof(struct ethernet) + sizeof(struct ipv4),
	IPV6_HEADERS = sizeof(struct ethernet) + sizeof(struct ipv6),
};

#define ETHERTYPE_IPV4 __builtin_bswap16(0x0800)
#define ETHERTYPE_IPV6 __builtin_bswap16(0x86dd)

/* Helpers of the kernel, by their numbers in include/uapi/linux/bpf.h. */
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u32 (*const random_u32)(void) = (void *)7;
static u32 (*const processor)(void) = (void *)8;
static long (*const redirect_map)(void *map, u64 key, u64 otherwise) = (void *)51;
static long (*const adjust_tail)(struct context *context, int change) = (void *)65;
/* Nanoseconds since the start of the machine, with the time for which it was suspended (CLOCK_BOOTTIME), as in the engine. */
static u64 (*const boot_time)(void) = (void *)125;
/* Ticks of the kernel's clock, 100 to 1,000 a second (Linux 5.6). The kernel puts a load in the place of the call. */
static u64 (*const ticks)(void) = (void *)118;
