#!/bin/bash
# Rates without loss by the procedure of RFC 8219 section 9 (the quick profile: indicative, not compliant) of Sixfold and of other servers, by
# turns: all names new, no AAAA records. The device has one thread on core 0, tester and authority share core 1.
#
#   cargo build --release -p sixfold -p sixfold-bench
#   rivals/rfc8219.sh target/release/sixfold target/release/sixfold-bench [ROUNDS [FOLDER]]
#
# DEVICES: names of templates (`sixfold-bench run --help`); default: sixfold unbound knot-resolver bind powerdns. A device of a round takes some
# minutes. The bundles go to FOLDER (default: a temporary one, which is removed), as ROUND-DEVICE.
set -eu
sixfold=$(realpath "$1") bench=$(realpath "$2") rounds=${3:-3}
folder=$(mktemp -d) results=${4:-$folder}
trap 'rm -rf "$folder"' EXIT
mkdir -p "$results"

plan() { # device, further lines of [device]
  cat <<PLAN
profile = "quick"
[search]
curve = []
[tester]
cores = [1]
[device]
template = "$1"
cores = "0"
$2
[authority]
cores = [1]
PLAN
}

for round in $(seq "$rounds"); do
  for device in ${DEVICES:-sixfold unbound knot-resolver bind powerdns}; do
    program=
    [ "$device" != sixfold ] || program="program = \"$sixfold\""
    plan "$device" "$program" >"$folder/plan.toml"
    if ! "$bench" run --plan "$folder/plan.toml" --out "$results/$round-$device" --quiet >"$folder/result"; then
      echo "round $round, $device: failed" >&2
    fi
    sed "s/^/round $round, $device: /" "$folder/result"
  done
done
