# goccl: every target needs Go and make; `race` needs a C compiler as well, and `mpi` what its line says.

.DEFAULT_GOAL := help
.PHONY: help demo gomlx gorgonia otel test long race mpi nodes nodes-kill metrics suites seeds seed-mutants seed-night single noasm generate check bench bench-paired bench-peers kill restarts programs slow fuzz ci

GO ?= go
# The library is pure Go. Without this, a machine that has no C compiler could not
# build what the standard library offers in two forms.
export CGO_ENABLED ?= 0

help: ## show the targets
	@while IFS= read -r line; do case $$line in [a-z]*:*'## '*) printf '%-12s %s\n' "$${line%%:*}" "$${line#*## }" ;; esac; done < Makefile

# Built from source on first use, which takes minutes; it is no dependency of the module.
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

demo: ## train a model on real data, on all cores of this machine
	$(GO) run ./examples/ddp $(ARGS)

gomlx: ## vet and test examples/gomlx, a module of its own; downloads and compiles GoMLX on first use
	$(GO) -C examples/gomlx vet ./...
	$(GO) -C examples/gomlx test -vet=off ./...

gorgonia: ## vet and test examples/gorgonia, a module of its own; downloads and compiles Gorgonia on first use
	$(GO) -C examples/gorgonia vet ./...
	$(GO) -C examples/gorgonia test -vet=off ./...

otel: ## vet and test examples/otel, a module of its own; downloads and compiles OpenTelemetry on first use
	$(GO) -C examples/otel vet ./...
	$(GO) -C examples/otel test -vet=off ./...

# Tests that take long and find little that the others miss: kernels a second time with other parameters,
# transports a second time on groups within groups, the suites on kernels that are wrong on purpose, the
# guide's commands, the programs in the documents, and builds of all programs.
LONG = ^Test(Conformance[A-Z].*|GroupConformance|Mutants|RightKernelsPass|CoverageTable|DocumentedCode|Guide|Static|Blame|ManyGroups|Outcomes|SameBitsAsProcesses|WriteAndReadForLong|Samples)$$

# Tests that make test runs with fewer cases: those that look at -short.
SHORT = ^Test(Bugs|LogicalShardsAcross|KernelsByTCP|Conformance|MappedConformance|ManyRanks|Protocol|Transport|TransportCarried|Naive|Test|Victim)$$

# Two packages for each processor: many tests wait, for timeouts and for processes, and others run meanwhile.
PACKAGES_AT_ONCE = $$((2 * $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)))

test: ## run the tests; the suites of kernels on 1, 2, 3, 8 and 33 ranks, those of transports on up to 3; nothing under an MPI
	$(GO) test -p $(PACKAGES_AT_ONCE) -short -vet=off -skip '$(LONG)' ./...

# The packages that have one: the tests of the others would be linked in vain.
LONG_PACKAGES = $$($(GO) list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do \
	grep -qsE '^$(subst ^,func ,$(subst $$,\b,$(LONG)|$(SHORT)))' "$$dir"/*_test.go && echo "$$package"; done)

long: ## run what make test leaves out: the conformance suites whole, and tests that take long
	$(GO) test -timeout 20m -vet=off -run '$(LONG)|$(SHORT)' $(LONG_PACKAGES)

race: ## run the tests under the race detector (needs a C compiler)
	@command -v $$(CGO_ENABLED=1 $(GO) env CC) >/dev/null || { echo "make race: the race detector needs a C compiler, and none is in PATH: install gcc or clang"; exit 1; }
	CGO_ENABLED=1 $(GO) test -race $(ARGS) $(or $(PACKAGES),./...)

mpi: ## run the tests under Open MPI, MPICH and Slurm, as root, also between nodes (needs gcc and Debian's openmpi-bin, mpich, iproute2, munge, slurmctld, slurmd, slurm-client, libpmix-dev, python3-mpi4py)
	TEST_GOCCL_MPI=required $(GO) test -count=1 -vet=off -v -run '^TestCluster$$' ./test/mpi # -v: says why, if the machine forbids stand-ins for nodes
	TEST_GOCCL_MPI=required $(GO) test -count=1 -vet=off ./transport/mpi/internal/abi ./test/mpi

# What holds between processes that share memory, and between nodes.
BY_TCP = ^Test(Killed|FlightOfTheKilled|RandomPrograms|RandomLayouts|SameAsProcesses|ManyGroups|MistakeAtInit|AnotherConfiguration|ReasonOfRefusal|KilledAtWork|AnySourceWithoutASender|KernelsByTCP|ExampleByTCP)$$

nodes: ## connect ranks and launchers of several nodes by TCP: in network namespaces, as root, and on loopback (needs iproute2; and torchrun, in Debian's python3-torch, or its command line in TORCHRUN)
	$(GO) test -tags nodes -count=1 -v -run '^TestNodes' $(or $(PACKAGES),./transport/internal/mesh ./test/deploy ./cmd/goccl/tool)
	$(GO) test -count=1 -timeout 20m ./test/processes -tcp -kills 48 -programs 48 -run '$(BY_TCP)'

nodes-kill: ## kill ranks, launchers and nodes, cut links and flood, 1,000 jobs, as root (needs iproute2; ARGS='-soak.jobs N -soak.seed S -soak.kind K')
	$(GO) test -tags nodes -count=1 -v -timeout 24h -run '^TestNodesKill$$' ./cmd/goccl/tool -soak.jobs 1000 $(ARGS)

metrics: ## let promtool check the metrics of eight ranks, and a Prometheus on loopback scrape them (needs Debian's prometheus)
	@command -v promtool >/dev/null && command -v prometheus >/dev/null || { echo "make metrics: promtool and prometheus are not in PATH: apt-get install --no-install-recommends prometheus"; exit 1; }
	$(GO) test -tags prometheus -count=1 -v -run '^TestPrometheus' ./cmd/goccl/tool

suites: ## run the conformance suites of kernels and transports whole under Open MPI and MPICH, as root, also between nodes
	TEST_GOCCL_MPI=required $(GO) test -count=1 -timeout 60m ./test/mpi -run '^Test(Kernels|Transport|DDP)$$' -whole $(ARGS)

# On one processor each: a seed lets one goroutine run at a time.
JOBS = $(GO) test -tags interleave -count=1 -v -cpu 1 -timeout 24h -run '^TestJobs$$' ./test/seeds -args

seeds: ## run jobs under seeds, one step at a time (ARGS='-seed N -count M')
	$(JOBS) $(ARGS)

seed-mutants: ## put defects back, one at a time, and find each by seeds (ARGS='-mutant NAME -count N')
	$(GO) test -tags interleave,mutants -count=1 -v -cpu 1 -timeout 24h -run '^TestMutants$$' ./test/seeds -args -count 100000 $(ARGS)

seed-night: ## run a million jobs under seeds (COUNT=N: so many), in as many processes as there are processors (SEED=N is the first)
	@n=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN); each=$$(($(or $(COUNT),1000000) / n)); \
	for i in $$(seq 0 $$((n - 1))); do $(JOBS) -seed $$((i * each + $(or $(SEED),1))) -count $$each $(ARGS) & all="$$all $$!"; done; \
	for one in $$all; do wait $$one || failed=1; done; exit $${failed:-0}

single: ## run the tests with one processor, where nobody may wait by spinning
	GOMAXPROCS=1 $(GO) test -count=1 ./... # the cache does not know the variable

noasm: ## run the tests without assembly
	$(GO) test -tags noasm ./...

generate: ## write what is made by programs: the lists of algorithms, types and what is tested, the schema of ccl.yaml, assembly
	$(GO) generate ./internal/reduce
	for page in algorithms types; do \
		$(GO) run ./cmd/goccl explain --$$page --markdown > docs/reference/$$page.md.new && mv docs/reference/$$page.md.new docs/reference/$$page.md || exit 1; \
	done
	$(GO) run ./cmd/goccl config schema > ccl.schema.json.new && mv ccl.schema.json.new ccl/config/ccl.schema.json
	$(GO) test -count=1 -run 'TestCoverageTable|TestPictures' ./ccl/ccltest -args -update

check: ## formatting, vet, linters, generated files, and builds for the other platforms
	@test -z "$$(gofmt -l .)" || { echo "gofmt has something to say about:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows $(GO) build ./...
	GOOS=linux GOARCH=386 $(GO) build ./...
	GOOS=linux GOARCH=arm $(GO) build ./...
	$(GOLANGCI_LINT) run
	$(GO) -C internal/reduce/_gen vet .
	@new=$$(mktemp -d); trap 'rm -r "$$new"' EXIT; \
	$(GO) -C internal/reduce/_gen run . "$$new" || exit 1; \
	for f in "$$new"/*; do \
		cmp "$$f" "internal/reduce/$${f##*/}" || { echo "internal/reduce is not what internal/reduce/_gen writes: make generate"; exit 1; }; \
	done
	@for page in algorithms types; do \
		$(GO) run ./cmd/goccl explain --$$page --markdown | cmp - docs/reference/$$page.md || { echo "docs/reference/$$page.md is not what the code says: make generate"; exit 1; }; \
	done
	@$(GO) run ./cmd/goccl config schema | cmp - ccl/config/ccl.schema.json || { echo "ccl/config/ccl.schema.json is not what the code says: make generate"; exit 1; }
	$(GO) mod verify

bench: ## time all-reduces beside the yardsticks of the same run, for about a minute
	$(GO) run ./cmd/goccl bench --ranks 2,4 --algorithm direct,ring $(ARGS)

bench-paired: ## time this working tree and the revision BASE in turns, nine passes, for some minutes; ARGS replaces the cases
	$(GO) run ./benchmarks/paired -base '$(BASE)' $(ARGS)

bench-peers: ## time all-reduce beside Open MPI, MPICH and torch's gloo, as far as they are installed
	$(GO) run ./benchmarks/peers $(ARGS)

kill: ## kill, stop and delay ranks that are processes, 1000 times, and print what is said of each failure, for about eight minutes
	$(GO) test -v -count=1 -timeout 30m ./test/processes -kills 500 -deaths 500 -stops 30 -cuts 60 -idle 10s -outcomes 20 $(ARGS)

restarts: ## kill ranks of 100 trainings, which start anew and end with the undisturbed weights, for about eight minutes
	$(GO) test -v -count=1 -timeout 60m ./examples/ddp -run TestRestarts -trainings 100 $(ARGS)

programs: ## run thousands of random programs, on processes and on goroutines, for about twenty minutes
	$(GO) test -count=1 -timeout 60m ./test/processes -run 'TestRandom(Programs|Departures)' -programs 3000 -departures 2000 $(ARGS)
	$(GO) test -count=1 -timeout 60m ./ccl -run 'TestRandom(Programs|Departures)' -programs 1000 -departures 4000
	$(GO) test -count=1 -timeout 60m ./dist -run TestRandomDepartures -departures 150
	$(GO) test -count=1 -timeout 60m ./test/processes -run TestRandomLayouts -layouts 1000
	$(GO) test -count=1 -timeout 60m ./primitive -run TestRandomLayouts -layouts 1000
	$(GO) test -count=1 -timeout 60m ./ddp -run TestRandomPlans -plans 1000 -process-plans 1000

slow: ## look for the slow rank in 20 jobs, and in 20 others whose ranks are equally fast for none, for about ten minutes on a quiet machine
	$(GO) test -v -count=1 -timeout 60m ./cmd/goccl/tool -run '^TestSlowRanks$$' -slow 20 $(ARGS)

fuzz: ## fuzz parsers, headers, arithmetic and folds for half a minute each
	$(GO) test -run '^$$' -fuzz FuzzParse -fuzztime 30s ./ccl/config
	$(GO) test -run '^$$' -fuzz FuzzDecodeFailure -fuzztime 30s ./transport/shm
	$(GO) test -run '^$$' -fuzz FuzzParseHeader -fuzztime 30s ./transport/shm
	$(GO) test -run '^$$' -fuzz FuzzNew -fuzztime 30s ./topology
	$(GO) test -run '^$$' -fuzz FuzzBlock -fuzztime 30s ./topology
	$(GO) test -run '^$$' -fuzz FuzzTree -fuzztime 30s ./topology
	$(GO) test -run '^$$' -fuzz FuzzKernels -fuzztime 30s ./algorithms/ring
	$(GO) test -run '^$$' -fuzz FuzzKernels -fuzztime 30s ./algorithms/tree
	$(GO) test -run '^$$' -fuzz FuzzMany -fuzztime 30s ./internal/reduce
	$(GO) test -run '^$$' -fuzz FuzzParse -fuzztime 30s ./cmd/goccl/internal/sweep
	$(GO) test -run '^$$' -fuzz FuzzWrite -fuzztime 30s ./internal/metrics
	$(GO) test -run '^$$' -fuzz FuzzKeyOfName -fuzztime 30s ./internal/launchenv
	$(GO) test -run '^$$' -fuzz FuzzAccept -fuzztime 30s ./internal/handshake
	$(GO) test -run '^$$' -fuzz FuzzDial -fuzztime 30s ./internal/handshake
	$(GO) test -run '^$$' -fuzz FuzzReceive -fuzztime 30s ./transport/internal/mesh
	$(GO) test -run '^$$' -fuzz FuzzFollow -fuzztime 30s ./transport/internal/mesh
	$(GO) test -run '^$$' -fuzz FuzzLead -fuzztime 30s ./transport/internal/mesh
	$(GO) test -run '^$$' -fuzz FuzzStore -fuzztime 30s ./transport/internal/mesh
	$(GO) test -run '^$$' -fuzz FuzzPackets -fuzztime 30s ./transport/internal/packet
	$(GO) test -run '^$$' -fuzz FuzzReceive -fuzztime 30s ./transport/tcp

ci: check test long single noasm race gomlx otel ## what has to pass before a change lands
