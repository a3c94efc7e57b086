# The only spelling of the project's commands. `make` alone lists them.

SHELL := /bin/bash
CARGO := cargo
# Where the tests note what ran against which server; absolute, since tests run anywhere.
REPORT := $(CURDIR)/target/report
# The features of the build that `deps` proves small.
FEATURES := default
MAX_CRATES := 80
DRIVERS := rustls|ring|aws-lc-rs|aws-lc-sys|openssl|openssl-sys|native-tls|tonic|prost|gcloud-sdk|google-cloud-.*|reqwest|redis|sqlx|sqlx-.*|object_store
CARGO_DENY := $(or $(shell command -v cargo-deny),$(CURDIR)/target/tools/bin/cargo-deny)

.PHONY: help test functional simulate storm storm-short storm-submissions trips bench demo terraform lint deps msrv deny image manifests clean

help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

# One feature set for all tests, so that the drivers are compiled once; what is said of stores and of checks
# that are not compiled in, only a build without them shows. Most tests wait, for servers or for a lapse, so that more
# of them than there are cores run at a time.
test: ## runs every test, with the servers, and prints what ran against each
	rm -rf $(REPORT)
	export PUSHONCE_TEST_REPORT=$(REPORT) RUST_TEST_THREADS=$${RUST_TEST_THREADS:-8}; status=0; \
	functional/with-servers $(CARGO) test --all-features --no-fail-fast || status=$$?; \
	$(CARGO) test --features telemetry --lib --test examples -- store::connect orders_ || status=$$?; \
	functional/summary || status=1; exit $$status

functional: ## runs the scenarios only, with the servers: make functional TEST=name
	functional/with-servers $(CARGO) test --all-features --test functional -- $(TEST)

simulate: ## runs the seeded simulation only
	$(CARGO) test --all-features --test simulation -- --nocapture

# How many: PUSHONCE_STORM_MESSAGES; on which stores: PUSHONCE_STORM_ON; the same fates again: PUSHONCE_STORM_SEED.
storm: ## kills and stops four processes behind the Pub/Sub emulator while 10,000 messages come, on each store
	PUSHONCE_STORM_MESSAGES=$${PUSHONCE_STORM_MESSAGES:-10000} \
	PUSHONCE_STORM_ON="$${PUSHONCE_STORM_ON:-datastore-emulator firestore-emulator redis postgres s3 transaction}" \
	functional/with-servers timeout 3600 $(CARGO) test --all-features --test storm -- --nocapture

storm-short: ## the same with 2,000 messages; part of make test
	functional/with-servers timeout 1200 $(CARGO) test --all-features --test storm -- --nocapture

# How many: PUSHONCE_ROUNDS. `make test` has 20.
storm-submissions: ## kills submissions and workers at each step, 200 rounds for each step and store, and prints a table
	PUSHONCE_ROUNDS=$${PUSHONCE_ROUNDS:-200} functional/with-servers $(CARGO) test --all-features --test submit_crashes -- --nocapture

trips: ## counts the round trips to each store on the wire, and fails above the target
	functional/with-servers $(CARGO) test --all-features --test trips -- --nocapture --test-threads=1 every_store_keeps_to_its_target

# The servers' data is in memory where it can be: the time that a disk takes would hide all other.
bench: ## runs the benchmarks, with the servers
	TMPDIR=$$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp) functional/with-servers $(CARGO) bench --all-features

demo: ## shows real-shaped pushes and submissions at the memory store
	$(CARGO) run --example demo --features submit

# TFCHECK names the folder of the offline provider, for where there is no registry; PUSHONCE_BIN the program
# that is to read the plans too.
terraform: ## validates, tests, plans and applies the Terraform module, and mistakes that must be refused
	functional/terraform/check

lint: ## checks format, clippy and rustdoc; a warning is a failure
	$(CARGO) fmt --check
	$(CARGO) clippy --no-default-features -- -D warnings
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) clippy --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --all-features
	@if command -v shellcheck >/dev/null; then shellcheck -x functional/with-servers functional/summary functional/servers/* functional/image/* functional/terraform/{check,life,quietly,stand-in/gcloud} .ci/run; else echo "shellcheck is not installed: the scripts were not looked at"; fi

deps: ## proves that the default build pulls no driver and no TLS, and counts its crates
	@crates=$$($(CARGO) tree --edges normal,build --features $(FEATURES) --prefix none --format '{p}') || exit 1; \
	crates=$$(awk '{ print $$1, $$2 }' <<<"$$crates" | sort -u); count=$$(wc -l <<<"$$crates"); \
	echo "$$count distinct crates in the build with the features '$(FEATURES)' (limit: below $(MAX_CRATES))"; \
	if grep -E '^($(DRIVERS)) ' <<<"$$crates"; then echo "the above are drivers or TLS" >&2; exit 1; fi; \
	((count < $(MAX_CRATES)))

msrv: ## checks that no dependency of the default build asks for a newer compiler than ours
	$(CARGO) test --all-features --test msrv

# Advisories need the network at its freshest: `cargo deny check advisories`, by whoever has it.
deny: $(CARGO_DENY) ## checks bans, licences and sources (installs cargo-deny into target/tools)
	$(CARGO_DENY) check bans licenses sources

$(CURDIR)/target/tools/bin/cargo-deny:
	$(CARGO) install cargo-deny --locked --root $(CURDIR)/target/tools

# Needs root on Debian, and no engine: some eight minutes at first, then what has changed.
image: ## builds the Dockerfile as it stands, runs the image, checks it, and prints what it weighs
	functional/image/bases
	functional/image/build
	functional/image/check
	functional/image/figures

manifests: ## lints the Dockerfile, cloudbuild.yaml and functional/compose.yaml
	functional/image/lint

clean: ## removes what was built
	$(CARGO) clean
	rm -rf $(CURDIR)/target
