# Parts that the measurements of upstream transports share (upstream-cost.sh, upstream-loss.sh): a temporary folder, Unbound as the
# upstream, Sixfold with one worker, and names that are all new. Sourced by them.

folder=$(mktemp -d)
cd "$folder"

# Stops what was started, however the measurement ends.
stop_all() {
  local pids
  # The server may be the child of a subshell that has ended.
  mapfile -t pids < <(jobs -p; cat server.pid 2>/dev/null || true)
  [ ${#pids[@]} = 0 ] || { kill "${pids[@]}" 2>/dev/null || true; wait "${pids[@]}" 2>/dev/null || true; }
  rm -rf "$folder"
}

unbound_conf() { # lines of the server clause: local data have an A record and no AAAA record for all names
  cat <<END
server:
$1
 num-threads: 1
 username: ""
 chroot: ""
 directory: "$folder"
 pidfile: "$folder/unbound.pid"
 use-syslog: no
 module-config: "iterator"
 local-zone: "perf.test." redirect
 local-data: "perf.test. SOA ns.perf.test. h.perf.test. 1 3600 600 604800 60"
 local-data: "perf.test. A 198.51.100.7"
remote-control:
 control-enable: no
END
}

sixfold_toml() { # listen address, forwarder, transport, further keys of upstream
  cat <<END
server = { listen = ["$1"], workers = 1, user = "root" }
upstream = { forwarders = ["$2"], transport = "$3"${4:+, $4} }
dns64 = { prefixes = ["2001:db8:64::/96"] }
limits = { pending-per-client = 65536 }
metrics = { listen = "" }
control = { socket = "$folder/control.sock" }
END
}

await_ready() { # waits for up to 10 s until Sixfold has said in the file `log` that it is ready
  local try
  for try in $(seq 200); do
    grep -qs 'sixfold: ready' log && return
    sleep 0.05
  done
  cat log >&2
  return 1
}

new_names() { # prefix, count: the queries for dnsperf
  awk -v prefix="$1" -v count="$2" 'BEGIN { for (i = 0; i < count; i++) print "n" prefix "-" i ".perf.test AAAA" }'
}
