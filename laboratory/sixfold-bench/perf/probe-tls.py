"""New clients of DNS over TLS: a connection, a handshake and one query every 100 ms, from 127.0.0.1.

    probe-tls.py PORT SECONDS

Prints the number of clients, the number that got no answer in 5 s, and the median, the 99th percentile and the longest time in ms.
"""

import socket
import ssl
import sys
import threading
import time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.set_alpn_protocols(["dot"])
NAME = b"\x0f000-000-000-009\x09dns64perf\x04test\0"
QUERY = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0" + NAME + b"\0\x1c\0\x01"
times, failed = [], []


def client():
    begin = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as stream, context.wrap_socket(stream) as tls:
            tls.sendall(len(QUERY).to_bytes(2, "big") + QUERY)
            answer = b""
            # Some servers send the length in a record of its own.
            while len(answer) < 14:
                octets = tls.recv(512)
                if not octets:
                    raise OSError("no answer")
                answer += octets
            if answer[5] & 15:
                raise OSError(f"RCODE {answer[5] & 15}")
        times.append(1e3 * (time.monotonic() - begin))
    except OSError as error:
        failed.append(error)


threads = []
for number in range(int(seconds * 10)):
    threads.append(threading.Thread(target=client))
    threads[-1].start()
    time.sleep(0.1)
for thread in threads:
    thread.join()
times.sort()
quantile = lambda share: times[min(len(times) - 1, int(share * len(times)))] if times else float("nan")
print(f"{len(threads)} {len(failed)} {quantile(0.5):.1f} {quantile(0.99):.1f} {quantile(1):.1f}")
