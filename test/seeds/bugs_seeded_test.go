//go:build interleave

package seeds

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

var updateBugs = flag.Bool("update-bugs", false, "write docs/reference/mistakes.txt")

// nameRank names the goroutine of a rank in reports.
func nameRank(rank int) { interleave.SetLabel(label(rank)) }

// runUnder runs a program of b under a seed. Time is the program's, so the timeout takes none.
func (b *bug) runUnder(t *testing.T, o interleave.Options, program func(rank int) error) (r interleave.Result, err error) {
	if !b.waits() {
		o.Patience = patience
	}
	r = interleave.Run(t, o, func() { err = b.start(program, time.Minute) })
	return r, err
}

// runBug runs an erroneous program, or its twin.
func runBug(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	var all []*bug
	for _, class := range classes {
		for i := range class.bugs {
			all = append(all, &class.bugs[i])
		}
	}

	b := all[seed/2%uint64(len(all))]
	if seed%2 == 0 {
		r, err := b.runUnder(t, o, b.right)
		return r, wrap(b, "the twin", err)
	}
	r, err := b.runUnder(t, o, b.wrong)
	if r.Finding != nil {
		return r, nil
	}
	return r, wrap(b, "the erroneous program", b.complaint(b.judge(err), err))
}

func wrap(b *bug, which string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of %q: %w", which, b.name, err)
}

// A receive is told that fails, since its sender has left, in the moment in which Spawn asks for the
// Works that its worker has left.
func TestReceiveFailsBesideDrain(t *testing.T) {
	i := slices.IndexFunc(requestBugs, func(b bug) bool { return b.name == endOfWorker })
	for seed := range uint64(400) {
		b := &requestBugs[i]
		if r, err := b.runUnder(t, interleave.Options{Seed: seed}, b.wrong); r.Finding != nil || err == nil {
			t.Errorf("seed %d: it is not told: %v", seed, r.Finding)
		}
	}
}

// A score is what some seeds have told of a bug.
type score struct {
	seeds, found, kind, rank, call, line, distracting, falseAlarms int

	withDebug bool // defaults.debug shows the line
}

// Every erroneous program is told under every seed, unless some interleavings are right, and every
// twin is silent. What errors tell is in docs/reference/mistakes.txt.
func TestBugsUnderSeeds(t *testing.T) {
	const seeds = 24
	table := &bugTable{}
	for _, class := range classes {
		table.begin(class.name)
		for i := range class.bugs {
			b, s := &class.bugs[i], score{seeds: seeds}
			for seed := range uint64(seeds) {
				s.add(t, b, interleave.Options{Seed: seed})
			}
			if s.line < s.found {
				debugged := *b
				debugged.isDebugged = true
				_, err := debugged.runUnder(t, interleave.Options{Seed: 1}, b.wrong)
				s.withDebug = debugged.judge(err).line
			}
			table.add(b, &s)
		}
	}

	name, text := filepath.Join("..", "..", "docs", "reference", "mistakes.txt"), table.text(seeds)
	if *updateBugs {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(name); err != nil || string(want) != text {
		t.Errorf("%s differs (%v): run the test with -update-bugs\n%s", name, err, text)
	}
}

// add runs both programs of b under a seed.
func (s *score) add(t *testing.T, b *bug, o interleave.Options) {
	t.Helper()
	r, err := b.runUnder(t, o, b.right)
	if r.Finding != nil || err != nil {
		s.falseAlarms++
		t.Errorf("%s, seed %d: the twin: %v %v", b.name, o.Seed, r.Finding, short(err))
	}

	r, err = b.runUnder(t, o, b.wrong)
	if r.Finding != nil {
		t.Errorf("%s, seed %d: %v", b.name, o.Seed, short(r.Finding))
	}
	got := b.judge(err)
	if err := b.complaint(got, err); err != nil {
		t.Errorf("%s, seed %d: %v", b.name, o.Seed, short(err))
	}

	for _, c := range []struct {
		count *int
		is    bool
	}{{&s.found, got.isFound}, {&s.kind, got.kind}, {&s.rank, got.rank}, {&s.call, got.call}, {&s.line, got.line}, {&s.distracting, got.distracted > 0}} {
		if c.is {
			*c.count++
		}
	}
}

// short cuts the text of an error.
func short(err error) string {
	text := fmt.Sprint(err)
	return text[:min(len(text), 2000)]
}

// bugTable is the table of the classes.
type bugTable struct {
	rows    []*bugRow
	remarks []string
}

// bugRow has numbers of programs.
type bugRow struct {
	class                                   string
	programs, always, sometimes, silentTwin int
	kind, rank, call, line, noise           int
}

func (b *bugTable) begin(class string) { b.rows = append(b.rows, &bugRow{class: class}) }

// add adds the score of a bug. A program counts as told of something if it is under all seeds under
// which anything is told.
func (b *bugTable) add(bug *bug, s *score) {
	row := b.rows[len(b.rows)-1]
	remark := func(text string) { b.remarks = append(b.remarks, fmt.Sprintf("%s, %s: %s", row.class, bug.name, text)) }
	row.programs++
	if s.falseAlarms == 0 {
		row.silentTwin++
	}
	row.noise += min(s.distracting, 1)
	switch {
	case s.found == 0:
		remark("not told: " + bug.missed)
		return
	case bug.isSometimes || s.found < s.seeds:
		row.sometimes++
	default:
		row.always++
	}

	var lacks []string
	for _, c := range []struct {
		of     *int
		got    int
		called string
	}{{&row.kind, s.kind, "kind"}, {&row.rank, s.rank, "rank"}, {&row.call, s.call, "call"}, {&row.line, s.line, "line"}} {
		if c.got == s.found {
			*c.of++
		} else {
			lacks = append(lacks, c.called)
		}
	}
	if lacks == nil {
		return
	}
	text := "told without the " + strings.Join(lacks, " and the ")
	if s.withDebug {
		text += ", which GOCCL_DEBUG=true shows"
	}
	remark(text)
}

// sum returns a row with the sums of all.
func (b *bugTable) sum() *bugRow {
	all := &bugRow{class: "all"}
	for _, r := range b.rows {
		all.programs, all.always, all.sometimes, all.silentTwin = all.programs+r.programs, all.always+r.always, all.sometimes+r.sometimes, all.silentTwin+r.silentTwin
		all.kind, all.rank, all.call, all.line, all.noise = all.kind+r.kind, all.rank+r.rank, all.call+r.call, all.line+r.line, all.noise+r.noise
	}
	return all
}

func (r *bugRow) String() string {
	told := r.always + r.sometimes
	percent := func(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(of, 1))) }
	return fmt.Sprintf("%-20s %8d %6d %9d %5d %6s %11s | %5s %5s %5s %5s | %5s", r.class, r.programs, r.always, r.sometimes, r.programs-told,
		percent(told, r.programs), percent(r.silentTwin, r.programs), percent(r.kind, told), percent(r.rank, told), percent(r.call, told),
		percent(r.line, told), percent(r.noise, told))
}

func (b *bugTable) text(seeds int) string {
	lines := []string{fmt.Sprintf(aboutBugs, seeds), fmt.Sprintf("%-20s %8s %6s %9s %5s %6s %11s | %5s %5s %5s %5s | %5s", "class", "programs", "always",
		"sometimes", "never", "recall", "specificity", "kind", "rank", "call", "line", "noise")}
	for _, r := range append(b.rows, b.sum()) {
		lines = append(lines, r.String())
	}
	return strings.Join(append(append(lines, ""), b.remarks...), "\n") + "\n"
}

const aboutBugs = `Which mistakes goccl tells

The classes are those of the MPI Bugs Initiative (Laurent, Saillard and Quinson, 2021). Helpfulness and
noise are measures of "Designing Quality MPI Correctness Benchmarks" (MPI-BugBench, 2024). Each erroneous
program has a twin, which is right. All ran as goroutines under %d seeds, which choose the order of all
steps of their ranks; none hung. The programs are in test/seeds. TestBugsUnderSeeds checks this file.

always       programs whose mistake is told in every order
sometimes    programs that are right in some orders, and told in others
recall       always and sometimes, of all programs
specificity  twins of which nothing is told, of all twins
kind, rank   of the programs that are told, those whose errors have the kind of the mistake, and name all
call, line   ranks that make it, the call, and the line of the source
noise        of the same, those in which the error of some rank has neither the kind nor one of the ranks

Not here, because they cannot be made, or do no harm:
resource leak       groups, regions and Works end with the default group; types and operations need no end
epoch lifecycle     there is no access to the memory of other ranks; of regions, Fence is a barrier
missing wait        Spawn completes what a worker has started
invalid types       do not compile; nor do requests of another kind
probe, topologies   there are no such calls
`
