//go:build interleave && mutants

package seeds

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

var (
	onlyMutant = flag.String("mutant", "", "only mutants whose name matches this regular expression")
	update     = flag.Bool("update", false, "write testdata/mutants-found.txt")
)

// switchOn is the file that a program with mutants has in package interleave.
const switchOn = `package interleave

import (
	"os"
	"unsafe"
)

// Mutant is the mutant that is switched on.
var Mutant = os.Getenv("SEEDS_MUTANT")

// Plain returns a word as one that is no atomic one.
func Plain[T, W any](word *W) *T { return (*T)(unsafe.Pointer(word)) }
`

// TestMutants puts each defect back, runs jobs until one finds it, and prints a table.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readMutants(root)
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(*onlyMutant)
	var chosen []*mutant
	for _, m := range all {
		if pattern.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}

	results := map[*mutant]hunted{}
	for _, set := range batches(chosen) {
		program := buildMutants(t, root, set)
		for _, m := range set {
			var h hunted
			for _, kind := range strings.Fields(cmp.Or(*onlyKind, m.kind)) {
				if h = hunt(t, program, m, kind); h.seed != 0 {
					break
				}
			}
			results[m] = h
			fmt.Printf("%-22s %-10s %7s %6.1fs  %s\n", m.name, h.kind, h.at(), h.took.Seconds(), h.what)
			if isMissed := h.seed == 0; isMissed && m.missed == "" {
				t.Errorf("mutant %s is not found", m.name)
			}
		}
	}
	if *update {
		writeFound(t, all, results)
	}
}

// buildMutants builds a program of this package's tests with a set of mutants.
func buildMutants(t *testing.T, root string, set []*mutant) (program string) {
	dir := t.TempDir()
	files, err := compose(root, set)
	if err != nil {
		t.Fatal(err)
	}
	files["internal/interleave/mutant.go"] = switchOn
	replaced := map[string]string{}
	for name, text := range files {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(root, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}

	program = filepath.Join(dir, "seeds.test")
	args, cgo := []string{"test", "-c", "-overlay", list, "-o", program, "-tags", "interleave,mutants"}, "CGO_ENABLED=0"
	if set[0].isRace {
		args[len(args)-1] += ",noasm" // the detector does not see what assembly does
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	build := exec.Command("go", append(args, ".")...)
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s", err, out)
	}
	return program
}

// hunted is how a mutant was found.
type hunted struct {
	seed uint64 // 0: it was not
	kind string // of the job
	what string // the first line that names a rank, or the first
	took time.Duration
}

func (h *hunted) at() string {
	if h.seed == 0 {
		return "missed"
	}
	return strconv.FormatUint(h.seed, 10)
}

// hunt runs jobs of a kind with one mutant switched on.
func hunt(t *testing.T, program string, m *mutant, kind string) (h hunted) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(*jobs)*50*time.Millisecond)
	defer cancel()
	start := time.Now()
	defer func() { h.kind, h.took = kind, time.Since(start) }()

	end := *firstSeed + uint64(*jobs)
	for from := *firstSeed; from < end; from = h.seed + 1 {
		var report string
		h.seed, report = runFirst(ctx, program, m.name, kind, from, end-from)
		if h.seed == 0 {
			break
		}
		h.what = sentenceOf(report)
		if *onlyMutant != "" {
			t.Logf("%s:\n%.6000s", m.name, report)
		}
		if ctx.Err() != nil {
			h.seed, h.what = 0, "hangs: "+h.what
			return h
		}

		if seed, _ := runFirst(ctx, program, "", kind, h.seed, 1); seed == 0 { // the mutant has done it
			return h
		}
	}
	return hunted{what: fmt.Sprintf("%d seeds of each kind", *jobs)}
}

// runFirst runs TestFirst, and returns the seed that has found something and its report; 0: none
// has.
func runFirst(ctx context.Context, program, mutant, kind string, from, count uint64) (seed uint64, report string) {
	run := exec.CommandContext(ctx, program, "-test.run", "^TestFirst$", "-test.timeout", "0",
		"-seed", fmt.Sprint(from), "-count", fmt.Sprint(count), "-kind", kind)
	run.Env = append(os.Environ(), "SEEDS_MUTANT="+mutant)
	out, err := run.CombinedOutput()
	if err == nil {
		return 0, ""
	}
	if i := bytes.LastIndex(out, []byte("\nat ")); i >= 0 {
		_, _ = fmt.Sscan(string(out[i+4:]), &seed)
		out = out[i+1:]
	}
	return seed, string(out)
}

// sentenceOf returns what a report says is wrong, with the first line that names a rank, and what
// that rank has not seen, or where the race detector has found a race.
func sentenceOf(report string) string {
	before, found, _ := strings.Cut(report, "found: ")
	if found == "" {
		_, found, _ = strings.Cut(report, "panic: ")
	}
	what := lineWith(found, "")
	if !strings.Contains(what, "rank ") {
		what += ": " + lineWith(found, "rank ")
	}
	for _, at := range accesses.FindAllStringSubmatch(before, 2) {
		what += ", " + at[1]
	}
	return fmt.Sprintf("%.400s", what)
}

// lineWith returns the first line of a report that has some text, and is not the job's.
func lineWith(report, text string) string {
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		isOfJob := strings.Contains(line, " ranks, waiting ") || strings.HasPrefix(line, "event ")
		if strings.Contains(line, text) && !isOfJob {
			return line
		}
	}
	return ""
}

// accesses finds where a race detector's report has the two accesses, outside of package interleave.
var accesses = regexp.MustCompile(`(?i)(?:read|write) at 0x.*\n(?:  .*\n .*internal/interleave/.*\n)*  .*\n +\S*/(\w+/\w+\.go:\d+)`)

// TestFirst runs jobs until one is wrong. It is for TestMutants.
func TestFirst(t *testing.T) {
	for i := range uint64(*jobs) {
		seed := *firstSeed + i
		fmt.Printf("\nat %d\n", seed)
		r, err := kindOf(seed).run(t, seed, interleave.Options{Seed: seed})
		if r.Finding != nil {
			err = r.Finding
		}
		if err != nil {
			if _, again := runAgain(t, kindOf(seed), seed, interleave.Options{Seed: seed, IsTraced: true}); again != nil {
				err = again // with words
			}
			t.Fatalf("found: %v", err)
		}
		if t.Failed() { // by a race
			return
		}
	}
}

// writeFound writes the table of what was found. Rows of mutants without a result stay as they are.
func writeFound(t *testing.T, all []*mutant, results map[*mutant]hunted) {
	name := filepath.Join("testdata", "mutants-found.txt")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for row := range strings.SplitSeq(string(before), "\n\n") {
		mutant, _, _ := strings.Cut(row, ", ")
		_, rows[mutant], _ = strings.Cut(strings.TrimSpace(row), "\n\t")
	}

	var b strings.Builder
	b.WriteString(aboutFound)
	found := 0
	for _, m := range all {
		row := rows[m.name]
		if h, ok := results[m]; ok && h.seed != 0 {
			row = fmt.Sprintf("found by %s, seed %d: %s", h.kind, h.seed, h.what)
		} else if ok {
			row = fmt.Sprintf("not found, in %s: %s", h.what, m.missed)
		}
		if strings.HasPrefix(row, "found") {
			found++
		}
		fmt.Fprintf(&b, "\n%s, of %s: %s\n\t%s\n", m.name, m.of, m.breaks, row)
	}
	fmt.Fprintf(&b, "\n%d of %d are found.\n", found, len(all))
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

const aboutFound = `# What has found the defects of mutants.txt: the first seed of a kind of jobs, from 1 to 100,000 at most.
# make seed-mutants ARGS=-update writes this file; with -mutant NAME too, only rows of such names.
`
