# The only spelling of the project's commands. `make` alone lists them.

SHELL := /bin/bash
CARGO := cargo
# Where the tests note what ran against which server; absolute, since tests run anywhere.
REPORT := $(CURDIR)/target/report
# The features of the build that `deps` proves small.
FEATURES := default
MAX_CRATES := 80
DRIVERS := rustls|ring|aws-lc-rs|aws-lc-sys|openssl|openssl-sys|native-tls|tonic|prost|gcloud-sdk|google-cloud-.*|reqwest|redis|sqlx|sqlx-.*|object_store
CARGO_MUTANTS := $(or $(shell command -v cargo-mutants),$(CURDIR)/target/tools/bin/cargo-mutants)
CARGO_DENY := $(or $(shell command -v cargo-deny),$(CURDIR)/target/tools/bin/cargo-deny)

.PHONY: help test functional fuzz fuzz-short soak simulate model faults storm storm-short storm-submissions trips bench mutants compare recover demo terraform lint deps msrv deny image manifests clean

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

# How long: PUSHONCE_FUZZ_SECONDS, for each target. `make test` has seeded changes instead, without a build of its own.
fuzz: ## fuzzes each target with libFuzzer, 10 minutes each
	fuzz/run $${PUSHONCE_FUZZ_SECONDS:-600}

fuzz-short: ## the same, 10 seconds each
	fuzz/run $${PUSHONCE_FUZZ_SECONDS:-10}

# How long: PUSHONCE_SOAK_SECONDS. SQLite's file is in memory where it can be: a disk would set the pace.
soak: ## 30 minutes of a steady load on SQLite and on Redis: memory and open files stay flat; draws docs/soak.png
	export PUSHONCE_SOAK_SECONDS=$${PUSHONCE_SOAK_SECONDS:-1800} TMPDIR=$$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp); \
	$(CARGO) test --release --features redis,sqlite,telemetry --test soak -- --nocapture --test-threads=1
	functional/plot/run functional/plot/soak.py target/soak docs/soak.png

simulate: ## runs the seeded simulation only
	$(CARGO) test --all-features --test simulation -- --nocapture

# WRITE=1 writes the page anew.
faults: ## makes each fault at each call of each step on each store, and prints the table of docs/faults.md
	PUSHONCE_FAULTS_WRITE=$(WRITE) RUST_TEST_THREADS=$${RUST_TEST_THREADS:-9} $(CARGO) test --all-features --test faults -- --nocapture matrix::

model: ## checks the model of the protocol in every order, and prints the counterexample of each planted fault
	$(CARGO) test --all-features --lib lease::model -- --nocapture --test-threads=1

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

# At most 90 minutes. MUTANTS_FLAGS: `--iterate` goes on where it was stopped, `--exclude 'src/verbs/*'` leaves files out.
mutants: $(CARGO_MUTANTS) ## breaks the core in one place at a time: the tests must notice (installs cargo-mutants into target/tools)
	PATH="$(dir $(CARGO_MUTANTS)):$$PATH" .ci/mutants $(MUTANTS_FLAGS)

$(CURDIR)/target/tools/bin/cargo-mutants:
	$(CARGO) install cargo-mutants --locked --root $(CURDIR)/target/tools

trips: ## counts the round trips to each store on the wire, and fails above the target
	functional/with-servers $(CARGO) test --all-features --test trips -- --nocapture --test-threads=1 every_store_keeps_to_its_target

# The servers' data is in memory where it can be: the time that a disk takes would hide all other.
bench: ## runs the benchmarks, with the servers
	TMPDIR=$$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp) functional/with-servers $(CARGO) bench --all-features

# A quarter of an hour when all is built; as much less of it as PUSHONCE_SCALE says (0.01: does it run).
compare: target/compare/venv/.made ## runs pushonce beside what people use today, and writes docs/benchmarks.md
	$(CARGO) bench --all-features --bench compare --no-run
	TMPDIR=$$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp) functional/with-servers $(CARGO) bench --all-features --bench compare

target/compare/venv/.made: benches/compare/peer/requirements.txt
	rm -rf target/compare/venv
	python3 -m venv target/compare/venv
	target/compare/venv/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Some 22 minutes, nearly all of them waiting: a lease of 15 minutes lapses, and Pub/Sub's pauses double meanwhile.
recover: target/compare/venv/.made ## kills holders under everybody's defaults, and lets go wrong what can; writes docs/benchmarks.md
	PUSHONCE_RECOVER=long functional/with-servers $(CARGO) test --all-features --test recover -- --nocapture

demo: ## shows real-shaped pushes and submissions at the memory store
	$(CARGO) run --example demo --features submit

# TFCHECK names the folder of the offline provider, for where there is no registry; PUSHONCE_BIN the program
# that is to read the plans too.
terraform: ## validates, tests, plans and applies the Terraform module, and mistakes that must be refused
	functional/terraform/check

lint: ## checks format, clippy and rustdoc; a warning is a failure
	$(CARGO) fmt --check
	$(CARGO) fmt --check --manifest-path fuzz/Cargo.toml
	$(CARGO) clippy --no-default-features -- -D warnings
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) clippy --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --all-features
	@if command -v shellcheck >/dev/null; then shellcheck -x fuzz/run functional/plot/run functional/with-servers functional/summary functional/servers/* functional/image/* functional/terraform/{check,life,quietly,stand-in/gcloud} .ci/run .ci/mutants; else echo "shellcheck is not installed: the scripts were not looked at"; fi

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
