# The two commands: `make run` and `make test`. `make help` lists the rest.
# Everything that is built or fetched lands in target/, web/node_modules, web/dist and the node_modules of tests/browser, tests/mcp and tests/tus.

SHELL := /bin/sh
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin
CARGO ?= cargo
# Arguments of the started program, for instance: make run ARGS="--config sluice.toml"
ARGS ?=

# Seconds for each fuzz target, and which of them; all, when none is named.
TIME ?= 600
TARGETS ?=

# Browsers come from Debian, never from an npm package's install step.
export PUPPETEER_SKIP_DOWNLOAD := 1
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD := 1
NPM_FLAGS := --no-audit --no-fund --loglevel=error
NPM_CI := npm ci $(NPM_FLAGS)

# Tests find a current ffmpeg by either; Debian's own cannot publish HEVC, AV1 and Opus.
test-rust test-postgres test-browser: export SLUICE_TEST_FFMPEG ?= $(CURDIR)/target/tools/ffmpeg/ffmpeg
test-rust test-postgres test-browser: export PYTHONPATH := $(CURDIR)/target/tools/ffmpeg/python:$(PYTHONPATH)

# Clippy compiles our crates for the tests, so that its checks take no second build of all libraries. Cargo keeps what it compiles so apart.
with_clippy := CLIPPY_ARGS=-Dwarnings RUSTC_WORKSPACE_WRAPPER=clippy-driver
# Scenarios wait for encoders, timers and browsers more than they compute.
test-rust test-postgres: export RUST_TEST_THREADS ?= 3

# Faults of cluster-soak, and a commit whose program the nodes of its rolling upgrade begin with.
FAULTS ?= 300
FROM ?=

web_sources := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/dist/*' 2>/dev/null)

.NOTPARALLEL:
.PHONY: help run build deb cluster test test-deb cluster-soak corpus fuzz bench bench-peers fmt openapi map lint check-format web \
        needs-build needs-test needs-deb needs-cluster needs-bench needs-quality needs-peers \
        test-rust test-postgres test-web test-browser test-proxies bench-micro bench-live bench-webrtc bench-images bench-webhooks bench-workflows bench-video bench-zip bench-cluster bench-dashboard bench-quality

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

run: build ## install what is missing, build, and start the service (data in ./data)
	exec target/release/sluice serve $(ARGS)

build: needs-build web ## the release program with the front end inside: target/release/sluice
	$(CARGO) build --release --locked
	@! target/release/sluice worker --help | grep -E -e '--(faults|prove|attempt)' \
		|| { echo "the release program has switches of tests (src/cli/worker.rs)" >&2; exit 1; }
	@! grep -q 'like those of an old print' target/release/sluice \
		|| { echo "the release program has the example operation (media/src/operation/fade.rs)" >&2; exit 1; }
	@scripts/separate-debug.sh target/release/sluice

cluster: needs-cluster build ## three nodes behind a balancer, with PostgreSQL and S3, on this machine until Ctrl-C
	@scripts/with-postgres.sh scripts/with-objects.sh scripts/cluster.sh

deb: build ## the Debian package: target/deb/sluice_VERSION_ARCHITECTURE.deb
	@packaging/deb/build.sh

test: needs-test check-format test-rust test-postgres test-web test-browser test-proxies test-deb ## all checks and tests

test-deb: needs-deb web ## install, upgrade and purge the Debian package in a new Debian root (part of `make test`; as root)
	$(with_clippy) $(CARGO) test --workspace --locked --no-run --test it
	@BINARY=$(or $(CARGO_TARGET_DIR),target)/debug/sluice packaging/deb/test.sh

cluster-soak: needs-test build ## FAULTS (300) kills and faults of the release program as nodes under load, outages as long as promised, and an upgrade FROM a commit
	@$(if $(FROM),scripts/older-program.sh $(FROM))
	SLUICE_SOAK_FAULTS=$(FAULTS) SLUICE_TEST_PROGRAM=$(CURDIR)/target/release/sluice SLUICE_OLDER_PROGRAM=$(if $(FROM),$$(scripts/older-program.sh $(FROM))) \
		$(with_clippy) $(CARGO) test --locked --test cluster -- --nocapture

corpus: needs-test web ## only the files that were made to break image libraries, with a table (part of `make test`)
	$(CARGO) test --locked --test corpus -- --nocapture

fuzz: needs-build web ## every fuzz target for TIME seconds (600), or those of TARGETS
	@scripts/fuzz.sh $(TIME) $(TARGETS)

bench: bench-micro bench-live bench-webrtc bench-images bench-webhooks bench-workflows bench-video bench-zip bench-cluster bench-dashboard bench-quality ## micro-benches, the load harness with nginx and vipsthumbnail beside it, the look of images

bench-peers: needs-peers build ## image delivery and WebRTC beside the servers that registries have: oximg, ipx, thumbor, Pion
	$(CARGO) bench --locked --bench load -- cdn-miss-unique --peers
	$(CARGO) bench --locked --bench load -- cdn-miss-ladder --peers
	$(CARGO) bench --locked --bench load -- web-rtc --peer pion

fmt: ## write the house format
	$(CARGO) fmt --all

openapi: needs-build web ## write docs/reference/openapi.json again, after a change of the API
	SLUICE_WRITE_OPENAPI=1 $(CARGO) test --locked -p sluice --lib -- http::tests::description

map: needs-build web ## write the index of files in docs/architecture.md again, after a change of a file's first sentence
	SLUICE_WRITE_MAP=1 $(CARGO) test --locked --test repository -- map

check-format:
	$(CARGO) fmt --all --check

lint: needs-build web check-format ## formatting and clippy, warnings are errors
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

needs-build:
	@scripts/install.sh build

needs-test:
	@scripts/install.sh test

needs-deb:
	@scripts/install.sh deb

needs-cluster:
	@scripts/install.sh cluster

needs-bench:
	@scripts/install.sh bench

needs-quality:
	@scripts/install.sh quality

needs-peers:
	@scripts/install.sh peers

web: web/dist/.built

web/dist/.built: $(web_sources) | needs-build web/node_modules/.installed
	cd web && npm run --silent build
	@touch $@

web/node_modules/.installed: web/package-lock.json | needs-build
	cd web && { $(NPM_CI); }
	@touch $@

tests/browser/node_modules/.installed: tests/browser/package-lock.json | needs-build
	cd tests/browser && { $(NPM_CI); }
	@touch $@

tests/mcp/node_modules/.installed: tests/mcp/package-lock.json | needs-build
	cd tests/mcp && { $(NPM_CI); }
	@touch $@

tests/tus/node_modules/.installed: tests/tus/package-lock.json | needs-build
	cd tests/tus && { $(NPM_CI); }
	@touch $@

test-rust: needs-test web tests/browser/node_modules/.installed tests/mcp/node_modules/.installed tests/tus/node_modules/.installed
	$(with_clippy) $(CARGO) test --workspace --locked --all-targets --no-run
	$(with_clippy) $(CARGO) test --workspace --locked --no-fail-fast

test-postgres: needs-test web ## the tests of store and actors once more, on a PostgreSQL server of their own (part of `make test`)
	@$(with_clippy) CARGO=$(CARGO) scripts/with-postgres.sh scripts/test-postgres.sh

test-web: web
	cd web && npm test --silent

test-browser: needs-test web tests/browser/node_modules/.installed
	cd tests/browser && npm test --silent

test-proxies: needs-test
	packaging/try-proxies.sh

bench-micro: needs-bench
	$(CARGO) bench --locked --workspace --exclude sluice

bench-live: needs-bench build
	$(CARGO) bench --locked --bench load -- live --publishers 10 --viewers 10 --peer nginx
	$(CARGO) bench --locked --bench load -- live --publishers 100 --bitrate 1M --viewers 0

bench-webrtc: needs-bench build tests/browser/node_modules/.installed
	$(CARGO) bench --locked --bench load -- web-rtc
	node benches/latency.mjs

bench-images: needs-bench build
	$(CARGO) bench --locked --bench load -- cdn-hit
	$(CARGO) bench --locked --bench load -- cdn-miss-unique
	$(CARGO) bench --locked --bench load -- cdn-miss-ladder --images 10
	$(CARGO) bench --locked --bench load -- cdn-equal
	$(CARGO) bench --locked --bench load -- convert

bench-webhooks: build
	$(CARGO) bench --locked --bench load -- webhooks

bench-workflows: needs-bench build
	$(CARGO) bench --locked --bench load -- workflows

bench-video: needs-bench build
	$(CARGO) bench --locked --bench load -- transcode
	$(CARGO) bench --locked --bench load -- ladder

bench-zip: needs-bench build
	$(CARGO) bench --locked --bench load -- zip

bench-cluster: needs-cluster build
	POSTGRES_FSYNC=on scripts/with-postgres.sh scripts/with-objects.sh \
		$(CARGO) bench --locked --bench load -- webhooks --nodes 2 --seconds 60 --only-healthy --backlog 0
	scripts/with-postgres.sh scripts/with-objects.sh $(CARGO) bench --locked --bench load -- move --files 10000

bench-dashboard: needs-bench build tests/browser/node_modules/.installed
	$(CARGO) bench --locked --bench load -- dashboard

bench-quality: needs-quality build
	$(CARGO) bench --locked --bench load -- photographs
	PYTHONPATH=target/tools/python:target/tools/ssimulacra2/python python3 benches/quality.py
