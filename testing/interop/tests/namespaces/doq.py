"""Client of DNS over QUIC (RFC 9250) on aioquic, for the tests in quic_clients.rs.

doq.py SERVER early NAME       asks on a first connection, which brings a session ticket; comes back with it, and sends a query for the
                               AAAA record of NAME and an UPDATE in 0-RTT data. Prints one line of JSON for each connection.
doq.py SERVER unvalidated N    begins N handshakes, which it never completes. Prints one line when the server has answered all of them.

SERVER is an IPv6 address. Both end with an error after 20 seconds. The authority of the certificate is in /mnt/ca.pem.
"""

import json
import select
import socket
import struct
import sys
import time

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamDataReceived

PORT = 853
SERVER_NAME = "dns.example"
DEADLINE = time.monotonic() + 20

QUERY, UPDATE = 0, 5
AAAA, SOA = 28, 6


def message(opcode, name, kind):
    """A message with one question, or zone, of the class IN. The ID is 0 (RFC 9250 section 4.2.1)."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", 0, opcode << 11 | 0x100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, 1)


def configuration(ticket=None):
    settings = QuicConfiguration(alpn_protocols=["doq"], server_name=SERVER_NAME, session_ticket=ticket)
    settings.load_verify_locations("/mnt/ca.pem")
    return settings


class Client:
    """A connection with its socket. Messages that are sent before the first `run` are 0-RTT data, if there is a ticket."""

    def __init__(self, server, ticket=None):
        self.server = (server, PORT)
        self.tickets = []
        self.handshake = None
        self.octets = {}
        self.answers = {}
        self.socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.connection = QuicConnection(
            configuration=configuration(ticket), session_ticket_handler=self.tickets.append
        )
        self.connection.connect(self.server, time.monotonic())

    def send(self, content):
        """Sends a message on a stream of its own, and ends the stream."""
        stream = self.connection.get_next_available_stream_id()
        self.connection.send_stream_data(stream, struct.pack("!H", len(content)) + content, end_stream=True)
        return stream

    def flush(self):
        for datagram, _ in self.connection.datagrams_to_send(time.monotonic()):
            self.socket.sendto(datagram, self.server)

    def run(self, is_over):
        """Sends and receives until the condition holds."""
        while not is_over():
            self.flush()
            now = time.monotonic()
            if now >= DEADLINE:
                sys.exit("no end of the exchange in time")
            timer = min(self.connection.get_timer() or DEADLINE, DEADLINE)
            if select.select([self.socket], [], [], max(timer - now, 0))[0]:
                datagram, sender = self.socket.recvfrom(65535)
                self.connection.receive_datagram(datagram, sender, time.monotonic())
            else:
                self.connection.handle_timer(time.monotonic())
            while event := self.connection.next_event():
                self.handle(event)

    def handle(self, event):
        if isinstance(event, ConnectionTerminated):
            sys.exit(f"closed with {event.error_code}: {event.reason_phrase}")
        if isinstance(event, HandshakeCompleted):
            self.handshake = event
        if isinstance(event, StreamDataReceived):
            self.octets[event.stream_id] = self.octets.get(event.stream_id, b"") + event.data
            if event.end_stream:
                self.answers[event.stream_id] = self.octets[event.stream_id][2:].hex()

    def finish(self, streams):
        """Waits for the answers, and for a ticket, prints all, and closes the connection."""
        self.run(lambda: self.handshake and self.tickets and all(stream in self.answers for stream in streams))
        record = {
            "early_data_accepted": self.handshake.early_data_accepted,
            "session_resumed": self.handshake.session_resumed,
            "answers": [self.answers[stream] for stream in streams],
        }
        print(json.dumps(record), flush=True)
        # DOQ_NO_ERROR.
        self.connection.close(error_code=0)
        self.flush()
        return self.tickets[-1]


def early(server, name):
    query = message(QUERY, name, AAAA)
    first = Client(server)
    ticket = first.finish([first.send(query)])
    second = Client(server, ticket)
    second.finish([second.send(query), second.send(message(UPDATE, name, SOA))])


def unvalidated(server, number):
    """Sends the first datagram of each handshake. The answers show by their connection IDs which of them the server has begun."""
    client = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    awaited = set()
    for _ in range(number):
        connection = QuicConnection(configuration=configuration())
        connection.connect((server, PORT), time.monotonic())
        awaited.add(connection.host_cid)
        for datagram, _ in connection.datagrams_to_send(time.monotonic()):
            client.sendto(datagram, (server, PORT))
    while awaited:
        client.settimeout(max(DEADLINE - time.monotonic(), 0.001))
        datagram = client.recv(65535)
        # RFC 9000 section 17.2: the form and the version take 5 octets, and the length of the ID one.
        awaited.discard(datagram[6 : 6 + datagram[5]])
    print(f"{number} handshakes are under way", flush=True)


server, mode, argument = sys.argv[1:]
if mode == "early":
    early(server, argument)
else:
    unvalidated(server, int(argument))
