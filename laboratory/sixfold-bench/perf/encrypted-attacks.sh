# Attacks on the encrypted listeners, for encrypted.sh: what others get meanwhile. Sourced, not run.
#
# The server has core 0. The attacker, a client over UDP at 1,000 queries/s, and a new client of DNS over TLS every 100 ms share core 1;
# the attacker has the lowest priority. Attacker and clients have different addresses.
# From the caller: start, stop, names, here, folder, servers, udp_port, dot_port, doh_port.

attacks=${ATTACKS:-none half-open handshakes garbage rapid-reset continuation bomb settings} attack_seconds=${ATTACK_SECONDS:-8}

# Prints the share of queries over UDP that were answered, the new clients, those without an answer, and their times in ms.
attacked() { # attack
  local port=$dot_port attacker= probe
  case $1 in rapid-reset | continuation | bomb | settings) port=$doh_port ;; esac
  if [ "$1" != none ]; then
    nice -n 19 python3 "$here/attack-tls.py" "$1" "$port" $((attack_seconds + 1)) >"$folder/attack.out" 2>/dev/null & attacker=$!
    sleep 0.7
  fi
  python3 "$here/probe-tls.py" "$dot_port" "$attack_seconds" >"$folder/probe.out" & probe=$!
  dnsperf -s 127.0.0.1 -p "$udp_port" -d "$folder/cached" -Q 1000 -l "$attack_seconds" -t 1 >"$folder/udp.out" 2>/dev/null
  wait $probe
  [ -n "$attacker" ] && wait "$attacker"
  awk '/Queries sent/ { sent = $3 } /Queries completed/ { done = $3 } END { printf "%.3f", 100 * done / sent }' "$folder/udp.out"
  echo " $(cat "$folder/probe.out") $(cat "$folder/attack.out" 2>/dev/null)"
}

measure_attacks() {
  names 0 1000 >"$folder/cached"
  local server attack
  echo "UDP answered in %, new clients over TLS, of them without an answer, median, p99 and longest ms, connections of the attacker:"
  for server in $servers; do
    for attack in $attacks; do
      rm -f "$folder/attack.out"
      start "$server" || break
      dnsperf -s 127.0.0.1 -p "$udp_port" -d "$folder/cached" -l 1 >/dev/null 2>&1 # fills the cache
      echo "$server, $attack: $(attacked "$attack")"
      stop
    done
  done
}
