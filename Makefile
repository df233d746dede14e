# Everything that is done to flipmill, by name. CI calls these targets and
# nothing else.

# Tools, pinned here and nowhere else. protoc-gen-go has the version of
# google.golang.org/protobuf in go.mod.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
CYCLONEDX   := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
BUF         := github.com/bufbuild/buf/cmd/buf@v1.75.0
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

GO       ?= go
ENGINE   ?= docker
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# A count, not a time: in Go 1.26 the end of a time can be taken for a failure of
# the target ("context deadline exceeded", go.dev/issue/75804).
FUZZTIME ?= 10000x
# The tests that start several processes or servers, which take minutes.
TAGS     := cluster
# All tags that there are, for what looks at sources.
ALL_TAGS := $(TAGS),readers,browser
PKG      ?= ./pkg/solver
BENCH    ?= .
COUNT    ?= 6
REV      ?= HEAD~1
KILLS    ?= 50
N        ?= 1000
RECORDS  ?= 4000000
SEED     ?= 0

# The same sources, version and Go give the same bytes, wherever they are built.
# -s -w leave out what only debuggers read.
BUILD := CGO_ENABLED=0 GOFLAGS= $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.releaseVersion=$(VERSION)'

# What make release makes binaries for.
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64

CHAOS := $(GO) test -tags=$(TAGS) -count=1 -v ./cmd/flipmill -run='^TestChaos$$' -seed=$(SEED)

.DEFAULT_GOAL := help
.NOTPARALLEL: # the steps of test load all cores by themselves
.PHONY: help build test test-all unit single race fuzz readers browser bench bench-once compare e2e chaos chaos-long cut-long simulate lint vuln generate image release profile clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the static binary, bin/flipmill
	$(BUILD) -o bin/flipmill ./cmd/flipmill

PARTS := lint vuln single race chaos fuzz readers browser bench-once

test: ## everything that must pass before a commit; ends with the seconds of each part
	@for part in $(PARTS); do start=$$(date +%s); $(MAKE) --no-print-directory $$part || exit 1; \
	  took="$$took $$part $$(($$(date +%s) - start))"; done; echo "seconds:$$took"

test-all: test ## test, and every board of the small sizes
	$(GO) test -count=1 -timeout=30m ./pkg/solver -all

unit: ## go test, as while working: all but the tests of several processes
	$(GO) test ./...
	$(GO) -C deployments test ./...

# One after the other: a machine that starts many processes at once stands still for
# longer than a client of the broker waits for a task, which then comes after ack-wait.
single: ## all tests but that of chaos, on one processor, where other orders of goroutines show
	$(GO) test -tags=$(TAGS) -cpu=1 -skip='^TestChaos$$' ./...
	$(GO) -C deployments test ./...

# The packages whose code starts no goroutine, and those of their tests that do: in the
# others nothing runs beside anything. TestAlone knows whether that is so.
ALONE  := config|corpus|dataset|draw|generate|protocol|puzzle|report|solver|tally|view|wire
BESIDE := TestBucket|TestBucketIdentity|TestCleanSparesTheLiving|TestCommitTwice|TestCompactInto|TestIdentify|TestSet|TestStdin

# All code that runs beside other code does so in the tests of its package and, as
# processes, in the named tests of the command; the command's others start the same
# processes more often, and its other scripts are verbs that read a dataset. The other
# packages' tests with the cluster tag do one thing after the other, start processes
# that are not built for it, or ask DuckDB, of which the detector sees nothing.
race: ## go test with the race detector
	$(GO) test -race -cpu=4 $$($(GO) list ./... | grep -vE '/cmd/|/pkg/($(ALONE))(/|$$)')
	$(GO) test -race -cpu=4 -run='^($(BESIDE))$$' $$($(GO) list ./... | grep -E '/pkg/($(ALONE))$$')
	$(GO) test -tags=$(TAGS) -race -cpu=4 -run='Scripts/^run|SameBytes|Interrupted|Processes|JobVerbs' ./cmd/...

fuzz: ## each fuzz target for FUZZTIME (10000x, that is runs)
	.ci/fuzz $(FUZZTIME)

NODE := cmd/flipmill/testdata/readers
BROWSER := cmd/flipmill/testdata/browser

readers: $(NODE)/node_modules/.package-lock.json ## DuckDB, arrow-go, Polars and hyparquet find the same in datasets of every form
	$(GO) test -count=1 -tags=readers -run=Readers ./cmd/flipmill

browser: $(BROWSER)/node_modules/.package-lock.json ## status pages and reports in Chromium, with axe
	$(GO) test -count=1 -tags=$(TAGS),browser -run='^Test(StatusPages|ReportCharts|ChartsLibrary)$$' ./cmd/flipmill

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund
	touch $@

bench-once: ## each benchmark once, so that none rots
	$(GO) test -run='^$$' -bench=. -benchtime=1x $$(ls -d */*_timing_test.go */*/*_timing_test.go | sed 's|^|./|; s|/[^/]*$$||' | uniq)

compare: ## run against DuckDB converting the same text, RECORDS boards, COUNT turns
	$(GO) test ./cmd/flipmill -run='^$$' -bench=AgainstDuckDB -benchtime=1x -timeout=60m -records=$(RECORDS) -rounds=$(COUNT)

bench: ## benchmarks BENCH of PKG against those of commit REV (HEAD~1), COUNT turns, by benchstat
	.ci/bench '$(REV)' '$(PKG)' '$(BENCH)' '$(COUNT)' $(BENCHSTAT)

e2e: build ## the command line and the whole pipeline
	$(GO) test -count=1 ./cmd/...

chaos: ## kill KILLS (50) processes of running jobs; SEED=N makes the choices of an earlier time again
	$(CHAOS) -timeout=3m -kills=$(KILLS)

chaos-long: ## kill N (1000) processes of running jobs
	$(CHAOS) -timeout=120m -kills=$(N)

simulate: N = 200000
simulate: ## N (200000) schedules of the roles over a model of the broker; SEED=N begins with the one of an earlier time
	$(GO) test -count=1 -v -timeout=60m ./pkg/protocol -run='^TestSimulation$$' -schedules=$(N) -seed=$(SEED)

cut-long: ## cut clients off from one server and from a cluster for a minute each
	$(GO) test -tags=$(TAGS) -count=1 -v ./cmd/flipmill -run='^TestCutOff$$' -timeout=20m -cut=60s

lint: ## format, vet, staticcheck, modernisation, go.mod
	.ci/format
	for module in . deployments; do (cd $$module && $(GO) vet -tags=$(ALL_TAGS) ./... && $(GO) run $(STATICCHECK) -tags=$(ALL_TAGS) ./... && \
	  $(GO) fix -diff -tags=$(ALL_TAGS) ./... && $(GO) mod tidy -diff) || exit 1; done

vuln: ## known vulnerabilities that our code can reach
	.ci/vuln $(GOVULNCHECK)

generate: ## sources and files that are made from others
	cd pkg/wire && $(GO) run $(BUF) generate
	$(GO) test ./pkg/config -run=Shipped -update
	$(GO) test ./pkg/queue -run=RolesFile -update
	$(GO) test ./cmd/flipmill -run=Reference -update

image: ## the container image flipmill:VERSION, with ENGINE (docker)
	$(ENGINE) build -f deployments/image/Containerfile --build-arg VERSION=$(VERSION) -t flipmill:$(VERSION) .

release: ## binaries, container image, bill of materials and checksums of VERSION, in dist/
	rm -rf dist && mkdir dist
	for p in $(PLATFORMS); do \
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(BUILD) -o dist/flipmill-$(VERSION)-$${p%/*}-$${p#*/} ./cmd/flipmill || exit 1; done
	$(GO) -C deployments run ./image -version $(VERSION) -out ../dist/flipmill-$(VERSION)-image.tar \
	  $(foreach p,$(filter linux/%,$(PLATFORMS)),$(p)=../dist/flipmill-$(VERSION)-$(subst /,-,$(p)))
	$(GO) run $(CYCLONEDX) bin -json -noserial -notimestamp -std -version $(VERSION) -output dist/flipmill-$(VERSION)-sbom.cdx.json dist/flipmill-$(VERSION)-linux-amd64
	cd dist && sha256sum flipmill-* >SHA256SUMS

profile: PKG = ./cmd/flipmill
profile: BENCH = Pipeline -records=$(RECORDS)
profile: ## CPU and allocation profiles of run, or of BENCH of PKG, in out/
	mkdir -p out
	$(GO) test $(PKG) -run='^$$' -o out/profile.test -cpuprofile=out/cpu.prof -memprofile=out/mem.prof -bench=$(BENCH)
	$(GO) tool pprof -top -nodecount=25 out/profile.test out/cpu.prof
	$(GO) tool pprof -top -nodecount=15 -sample_index=alloc_space out/profile.test out/mem.prof

clean: ## remove what the targets made
	rm -rf bin out dist
