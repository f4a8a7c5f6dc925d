"""Opens idle TLS connections to a port of 127.0.0.1, with the protocol "dot".

    idle-tls.py PORT COUNT

Prints the number that opened, and waits for SIGUSR1. Prints then how many are still open, and ends.
"""

import signal
import socket
import ssl
import sys

port, count = int(sys.argv[1]), int(sys.argv[2])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.set_alpn_protocols(["dot"])
connections = []
for number in range(count):
    try:
        # 20,000 ports of the client are more than enough, but not all of them with one address of it.
        source = (f"127.0.{1 + number // 1000}.1", 0)
        stream = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=source)
        connections.append(context.wrap_socket(stream))
    except OSError as error:
        print(f"connection {number}: {error}", file=sys.stderr)
        break
print(len(connections), flush=True)
signal.sigtimedwait({signal.SIGUSR1}, 600)


def is_open(connection):
    """Tells whether the server has neither closed nor reset a connection. Session tickets may be waiting."""
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except (ssl.SSLWantReadError, BlockingIOError):
        return True
    except OSError:
        return False


print(sum(map(is_open, connections)), flush=True)
