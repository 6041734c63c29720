package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// The multiples of the baseline's ratio that count as slower, far above the repeatability
// of ratios. Ratios of barriers vary by two with the distance of the cores.
const (
	slowdown        = 2.0
	barrierSlowdown = 2.5
)

// inCompany is how many of the ranks' cores other programs must have used to make a
// measurement unclear: ranks that poll need all of their cores at the same time.
const inCompany = 0.2

// guard is the state of `goccl bench --check`.
type guard struct {
	path     string
	baseline *measure.Baseline
	job      measure.Job
	document *measure.Document
	out      *benchTable
}

// check is `goccl bench --check`: it measures the cases of a baseline, and compares.
func (c *benchCommand) check(ctx context.Context, stdout io.Writer, bars bars) error {
	baseline, err := measure.ReadBaseline(c.Check)
	if err != nil {
		return err
	}
	config, found, err := loadConfig("")
	if err != nil {
		return err
	}
	g := &guard{
		path:     c.Check,
		baseline: baseline,
		job:      measure.Job{Config: config, Budget: c.budget()},
		document: measure.NewDocument(found),
	}
	if c.Renew {
		g.out = newBenchTable(stdout, bars, g.document, false)
		return g.renew(ctx, stdout)
	}
	rows, err := g.rows()
	if err != nil {
		return err
	}
	g.out = newBenchTable(stdout, bars, g.document, false)
	fmt.Fprintf(stdout, "baseline       %s: %s, %v\n", c.Check, baseline.Date.Format("2006-01-02 15:04"), baseline.Machine)
	if !g.sameMachine() {
		fmt.Fprintln(stdout, "               of another machine, whose caches and cores may have other ratios")
	}
	err = g.measureRows(ctx, rows, func(r *checkRow) bool { return r.skipped == "" })
	again := func(r *checkRow) bool { return r.last().slower || r.last().unclear }
	if err == nil && slices.ContainsFunc(rows, again) {
		fmt.Fprintln(stdout, "\nMeasured again, since slower or unclear:")
		err = g.measureRows(ctx, rows, again)
	}
	if err != nil {
		return err
	}
	table := [][]string{append(slices.Clip(caseColumns), "ENTRY", "YARDSTICK", "BASELINE", "NOW", "AGAIN", "BOUND", "VERDICT")}
	for _, r := range rows {
		table = append(table, r.cells())
	}
	var out bytes.Buffer
	writeCases(&out, table)
	fmt.Fprintf(&out, aboutCheck, slowdown, barrierSlowdown)
	_, err = stdout.Write(out.Bytes())
	return errors.Join(err, judge(g.document.Results), g.judge(rows))
}

const aboutCheck = `
BASELINE, NOW, AGAIN: multiples of the YARDSTICK of the same rounds; of own copy and peer copy the one that shows the smaller
change. BOUND: %g times the baseline, for barriers %g times. VERDICT: slower, if above it twice; unclear, if other programs
used the cores of ranks that poll, twice; faster, if below the baseline by as much: renew it, to keep the gain.
`

func (g *guard) sameMachine() bool { return g.baseline.Machine.Like(g.document.Machine) }

// checkRow is an entry of a case of the baseline, with its measurements.
type checkRow struct {
	measure.Expected
	entry   string
	skipped string // why it is not compared
	runs    []checked
}

// checked is one measurement of a row.
type checked struct {
	ratios    map[string]float64
	yardstick string // of the verdict
	verdict   string
	slower    bool
	unclear   bool
}

func (r *checkRow) last() checked {
	if len(r.runs) == 0 {
		return checked{verdict: "skipped: " + r.skipped}
	}
	return r.runs[len(r.runs)-1]
}

// tooMuch is the bound, as a multiple of the baseline.
func (r *checkRow) tooMuch() float64 {
	if r.entry == "" {
		return barrierSlowdown
	}
	return slowdown
}

func (r *checkRow) String() string {
	return r.Name() + strings.TrimRight(", "+r.entry, ", ")
}

// rows returns the rows of the baseline. It skips those whose ranks poll on one machine
// and sleep on the other, since that changes times by several times.
func (g *guard) rows() (rows []*checkRow, err error) {
	there, here := g.baseline.Machine, g.document.Machine
	for _, e := range g.baseline.Cases {
		for _, entry := range e.Entries() {
			r := &checkRow{Expected: e, entry: entry}
			if len(e.Ratios[entry]) == 0 {
				return nil, fmt.Errorf("%s has no ratios of %v: %s", g.path, r, g.renewal())
			}
			if here.Polls(e.Ranks) != there.Polls(e.Ranks) {
				r.skipped = fmt.Sprintf("%d ranks %s here, and %s there", e.Ranks, waiting(here, e.Ranks), waiting(there, e.Ranks))
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func waiting(m measure.Machine, ranks int) string {
	how := "sleep"
	if m.Polls(ranks) {
		how = "poll"
	}
	return fmt.Sprintf("%s on %d cores", how, m.UsableCores())
}

func (g *guard) renewal() string { return fmt.Sprintf("goccl bench --check %s --renew", g.path) }

// measureRows measures the rows that which selects, all rows of a case together.
func (g *guard) measureRows(ctx context.Context, rows []*checkRow, which func(*checkRow) bool) error {
	var cases []measure.Case
	of := map[measure.Case][]*checkRow{}
	for _, r := range rows {
		if which(r) {
			cases = append(cases, r.Case)
			of[r.Case] = append(of[r.Case], r)
		}
	}
	cases = slices.Compact(cases) // the rows of a case are adjacent
	return g.out.measureAll(cases, func(c measure.Case) (measure.Result, error) {
		var entries []string
		for _, r := range of[c] {
			entries = append(entries, r.entry)
		}
		result, err := g.measure(ctx, c, entries)
		if err == nil {
			for i, row := range result.Algorithms() {
				of[c][i].compare(result, row, g.document.Machine.Polls(c.Ranks))
			}
		}
		return result, err
	})
}

func (g *guard) measure(ctx context.Context, c measure.Case, entries []string) (measure.Result, error) {
	if g.job.Entries = entries; entries[0] == "" { // a barrier
		g.job.Entries = nil
	}
	if mistake, ok := errors.AsType[*measure.Mistake](measure.Check([]*measure.Job{&g.job})); ok {
		return measure.Result{}, fmt.Errorf("%s: %s", g.path, mistake.Message)
	}
	return g.job.Measure(ctx, c)
}

// compare compares a measurement of the row with the baseline. Code that has become
// slower is slower by all yardsticks; if they differ, a yardstick has changed, so the
// smallest change counts.
func (r *checkRow) compare(result measure.Result, row measure.Row, polling bool) {
	now := checked{ratios: result.Ratios(row)}
	change := math.Inf(1)
	expected := r.Ratios[r.entry]
	for _, yardstick := range slices.Sorted(maps.Keys(expected)) { // the first of equals
		x, there := now.ratios[yardstick]
		if x /= expected[yardstick]; there && math.Abs(math.Log(x)) < math.Abs(math.Log(change)) {
			now.yardstick, change = yardstick, x
		}
	}
	switch {
	case row.Refused != "":
		now.verdict = "refused"
	case row.Errors > 0:
		now.verdict = "wrong"
	case polling && result.Company >= inCompany: // ranks that sleep share cores anyway
		now.verdict, now.unclear = fmt.Sprintf("unclear: other programs had %.2f cores", result.Company), true
	case now.yardstick == "":
		now.verdict, now.unclear = "unclear: no yardstick was measured", true
	case change > r.tooMuch():
		now.verdict, now.slower = "slower", true
	case change < 1/r.tooMuch():
		now.verdict = "faster"
	default:
		now.verdict = "ok"
	}
	r.runs = append(r.runs, now)
}

func (r *checkRow) cells() []string {
	last := r.last()
	before := r.Ratios[r.entry][last.yardstick]
	measured := [2]string{"-", "-"}
	for i, run := range r.runs {
		measured[i] = measure.Multiple(run.ratios[last.yardstick])
	}
	return append(caseCells(r.Case), orDash(r.entry), orDash(last.yardstick),
		measure.Multiple(before), measured[0], measured[1], measure.Multiple(before*r.tooMuch()), last.verdict)
}

// judge returns an error that names the rows above their bounds.
func (g *guard) judge(rows []*checkRow) error {
	var slow, refused string
	compared := false
	for _, r := range rows {
		last := r.last()
		compared = compared || r.skipped == "" && !last.unclear
		switch {
		case last.slower:
			slow += fmt.Sprintf("\n  %v: %s times %s, and %s in the baseline", r,
				measure.Multiple(last.ratios[last.yardstick]), last.yardstick, measure.Multiple(r.Ratios[r.entry][last.yardstick]))
		case last.verdict == "refused":
			refused += fmt.Sprintf("\n  %v", r)
		}
	}
	var all []error
	if slow != "" {
		next := "If this is intended, renew the baseline: " + g.renewal()
		if !g.sameMachine() {
			next = "The baseline is of another machine. Make one here at a commit that you trust, and check again: " + g.renewal()
		}
		all = append(all, fmt.Errorf("slower than %s allows, twice:%s\n%s", g.path, slow, next))
	}
	if refused != "" {
		all = append(all, fmt.Errorf("%s has calls that are refused here:%s", g.path, refused))
	}
	if !compared {
		all = append(all, fmt.Errorf("nothing of %s could be compared. If rows are unclear, check again on a quiet machine; if they are skipped, make a baseline of this one: %s", g.path, g.renewal()))
	}
	return errors.Join(all...)
}

// renew writes a new baseline. It measures all cases three times in turns, and takes the
// median of each, without measurements that other programs disturbed.
func (g *guard) renew(ctx context.Context, stdout io.Writer) error {
	entries := map[measure.Case][]string{}
	var cases []measure.Case
	for _, e := range g.baseline.Cases {
		cases = append(cases, e.Case)
		entries[e.Case] = e.Entries()
	}
	all := map[measure.Case][]measure.Result{}
	err := g.out.measureAll(slices.Repeat(cases, 3), func(c measure.Case) (measure.Result, error) {
		result, err := g.measure(ctx, c, entries[c])
		all[c] = append(all[c], result)
		return result, err
	})
	if err == nil {
		err = judge(g.document.Results)
	}
	if err != nil {
		return fmt.Errorf("%w; %s is unchanged", err, g.path)
	}
	renewed := measure.Baseline{Date: g.document.Date, Machine: g.document.Machine}
	noisy := 0
	for _, c := range cases {
		quiet := slices.DeleteFunc(slices.Clone(all[c]), func(r measure.Result) bool {
			return g.document.Machine.Polls(c.Ranks) && r.Company >= inCompany
		})
		if len(quiet) == 0 {
			quiet = all[c]
			noisy++
		}
		e := measure.Expected{Case: c, Ratios: map[string]map[string]float64{}}
		for i, row := range quiet[0].Algorithms() {
			if e.Ratios[row.Entry] = medians(quiet, i); len(e.Ratios[row.Entry]) == 0 {
				why := cmp.Or(row.Refused, "no yardstick was measured; it needs two free cores")
				return fmt.Errorf("%v: %s; %s is unchanged", &checkRow{Expected: e, entry: row.Entry}, why, g.path)
			}
		}
		renewed.Cases = append(renewed.Cases, e)
	}
	if err := renewed.WriteFile(g.path); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "written: %s\n", g.path)
	if noisy > 0 {
		fmt.Fprintf(stdout, "In %d of %d cases other programs used cores each time; renew again on a quiet machine.\n", noisy, len(cases))
	}
	return nil
}

// medians returns the ratios of the i-th algorithm, each the median over the results.
func medians(results []measure.Result, i int) map[string]float64 {
	every := map[string][]float64{}
	for _, r := range results {
		for yardstick, x := range r.Ratios(r.Algorithms()[i]) {
			every[yardstick] = append(every[yardstick], x)
		}
	}
	median := map[string]float64{}
	for yardstick, all := range every {
		slices.Sort(all)
		median[yardstick] = all[(len(all)-1)/2] // the stricter of two
	}
	return median
}
