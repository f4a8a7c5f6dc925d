# The everyday commands.

.PHONY: test bench fmt lint

# Everything: see ./test.
test:
	./test

# Sixfold beside a bare reflector, Unbound, BIND and PowerDNS, and the parts of the laboratory beside others of their kind. Options go into BENCH: make bench BENCH='--quick'
bench:
	cargo build --release -p sixfold -p sixfold-bench -p sixfold-rivals
	cargo run --release -q -p sixfold-rivals -- $(BENCH)

fmt:
	cargo fmt --all

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
