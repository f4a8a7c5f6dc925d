# Servers for encrypted.sh: how each starts, and how each reads its certificate again. Sourced, not run.
#
# Every server gets one thread, the upstream as only forwarder, no validation, no log, room for 12,000 connections of one client, and
# ten minutes for idle connections. dnsdist has no DNS64: it answers an AAAA query with the empty answer of the upstream.
# From the caller: run (replaces the shell by a pinned program), folder, prefix, sixfold, udp_port (also TCP), dot_port, doh_port,
# control_port, upstream_port.

start_sixfold() {
  cat >"$folder/sixfold.toml" <<END
server = { listen = ["127.0.0.1:$udp_port"], workers = 1, user = "root" }
upstream = { forwarders = ["127.0.0.1:$upstream_port"] }
dns64 = { prefixes = ["$prefix"] }
metrics = { listen = "" }
control = { socket = "$folder/sixfold.sock" }
[limits]
pending-per-client = 65536
tcp-connections = 12000
tcp-per-client = 12000
tcp-idle = "10m"
[tls]
certificate = "$folder/cert.pem"
key = "$folder/key.pem"
listen-dot = ["127.0.0.1:$dot_port"]
listen-doh = ["127.0.0.1:$doh_port"]
END
  run "$sixfold" serve --config "$folder/sixfold.toml"
}
reload_sixfold() { "$sixfold" ctl --socket "$folder/sixfold.sock" reload; }

start_unbound() {
  cat >"$folder/unbound.conf" <<END
server:
  interface: 127.0.0.1@$udp_port
  interface: 127.0.0.1@$dot_port
  interface: 127.0.0.1@$doh_port
  tls-port: $dot_port
  https-port: $doh_port
  tls-service-pem: "$folder/cert.pem"
  tls-service-key: "$folder/key.pem"
  access-control: 127.0.0.0/8 allow
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "$folder"
  pidfile: ""
  use-syslog: no
  verbosity: 0
  num-threads: 1
  incoming-num-tcp: 5200 # on each of three addresses
  tcp-idle-timeout: 600000
  module-config: "dns64 iterator"
  dns64-prefix: $prefix
  do-not-query-localhost: no
  local-zone: "test." nodefault
  outgoing-range: 4000
  num-queries-per-thread: 4000
remote-control:
  control-enable: yes
  control-interface: $folder/unbound.sock
  control-use-cert: no
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@$upstream_port
END
  run unbound -d -c "$folder/unbound.conf"
}
reload_unbound() { unbound-control -c "$folder/unbound.conf" reload; }

start_bind() {
  printf 'key "rndc-key" { algorithm hmac-sha256; secret "c2l4Zm9sZC1yaXZhbHMtcm5kYy1rZXkh"; };\n' >"$folder/rndc.key"
  cat >"$folder/named.conf" <<END
include "$folder/rndc.key";
controls { inet 127.0.0.1 port $control_port allow { 127.0.0.1; } keys { "rndc-key"; }; };
tls local { cert-file "$folder/cert.pem"; key-file "$folder/key.pem"; };
http local { endpoints { "/dns-query"; }; listener-clients 12000; };
options {
  directory "$folder";
  pid-file none;
  listen-on port $udp_port { 127.0.0.1; };
  listen-on port $dot_port tls local { 127.0.0.1; };
  listen-on port $doh_port tls local http local { 127.0.0.1; };
  listen-on-v6 { none; };
  allow-query { any; };
  recursion yes;
  allow-recursion { any; };
  recursive-clients 10000;
  tcp-clients 12000;
  tcp-idle-timeout 1200;
  tcp-keepalive-timeout 1200;
  forward only;
  forwarders { 127.0.0.1 port $upstream_port; };
  dnssec-validation no;
  empty-zones-enable no;
  querylog no;
  dns64 $prefix { clients { any; }; };
};
logging { category default { null; }; category unmatched { null; }; };
END
  run named -f -n 1 -U 1 -c "$folder/named.conf"
}
reload_bind() { rndc -k "$folder/rndc.key" -s 127.0.0.1 -p "$control_port" reconfig; }

start_kresd() {
  mkdir -p "$folder/kresd"
  cat >"$folder/kresd.conf" <<END
net.listen('127.0.0.1', $udp_port, { kind = 'dns' })
net.listen('127.0.0.1', $dot_port, { kind = 'tls' })
net.listen('127.0.0.1', $doh_port, { kind = 'doh2' })
net.listen('$folder/kresd.sock', nil, { kind = 'control' })
net.tls('$folder/cert.pem', '$folder/key.pem')
net.tcp_pipeline(1000)
modules = { dns64 = '${prefix%/*}' }
trust_anchors.remove('.')
policy.add(policy.all(policy.FORWARD({'127.0.0.1@$upstream_port'})))
cache.size = 100 * MB
log_level('crit')
END
  run kresd -n -q -c "$folder/kresd.conf" "$folder/kresd"
}
reload_kresd() { # an answer comes only after the prompt, so the connection ends after a pause
  python3 - "$folder" <<'END'
import socket, sys, time
folder = sys.argv[1]
control = socket.socket(socket.AF_UNIX)
control.connect(f"{folder}/kresd.sock")
control.sendall(f"net.tls('{folder}/cert.pem', '{folder}/key.pem')\n".encode())
time.sleep(0.1)
END
}

start_dnsdist() {
  cat >"$folder/dnsdist.conf" <<END
setLocal('127.0.0.1:$udp_port')
addTLSLocal('127.0.0.1:$dot_port', '$folder/cert.pem', '$folder/key.pem', { maxInFlight = 1000 })
addDOHLocal('127.0.0.1:$doh_port', '$folder/cert.pem', '$folder/key.pem', '/dns-query', { idleTimeout = 600 })
setMaxTCPClientThreads(1)
setMaxTCPQueuedConnections(12000)
setMaxTCPConnectionsPerClient(0)
setTCPRecvTimeout(600)
setSecurityPollSuffix('')
newServer({ address = '127.0.0.1:$upstream_port', healthCheckMode = 'up' })
getPool(''):setCache(newPacketCache(200000))
controlSocket('127.0.0.1:$control_port')
setKey('c2l4Zm9sZC1yaXZhbHMtZG5zZGlzdC1jb25zb2xlISE=')
END
  run dnsdist --supervised --disable-syslog -C "$folder/dnsdist.conf"
}
reload_dnsdist() { dnsdist -C "$folder/dnsdist.conf" -e 'reloadAllCertificates()'; }
