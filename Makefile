# Everyday commands.

.PHONY: test deb static bench fmt lint book

# All checks and tests; see ./test.
test:
	./test

# Debian packages of the server and the laboratory, in target/debian. Options in DEB: make deb DEB='--help'
deb:
	packaging/build-deb $(DEB)

# Static binaries for x86-64 and 64-bit Arm, in target/static. Options in STATIC: make static STATIC='--help'
static:
	packaging/build-static $(STATIC)

# Benchmark of Sixfold beside a bare reflector, Unbound, BIND, PowerDNS and Knot Resolver, and of the laboratory's parts beside similar
# programs. Pass options in BENCH: make bench BENCH='--quick', make bench BENCH='--rivals DIR --page FILE'
bench:
	cargo build --profile dist -p sixfold -p sixfold-bench
	cargo run --profile dist -q -p sixfold-bench -- perf $(BENCH)

fmt:
	cargo fmt --all

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# The book in target/book/html: checks the links, lays the source out, builds it with mdBook, and checks the result.
book:
	cargo run -q -p sixfold-book
	mdbook build target/book
	cargo run -q -p sixfold-book -- site target/book/html
