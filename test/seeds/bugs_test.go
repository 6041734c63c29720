package seeds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
)

// A bug is an erroneous program, and its twin, which is right. The mistakes are those of the MPI
// Bugs Initiative (Laurent, Saillard and Quinson, 2021) and of MPI-BugBench (2024); the programs are
// goccl's own.
type bug struct {
	name   string
	origin string // the features of MPI: P2P, iP2P, pP2P, Coll, iColl, pColl, Coll+
	size   int    // ranks; 0: 2

	wrong, right func(rank int) error
	isBare       bool // the programs make and end the group themselves
	isDebugged   bool // with defaults.debug

	// What errors must tell: the kind of the mistake, the ranks, and the call.
	kind  mistake
	ranks []int
	call  string

	isSometimes bool   // some interleavings are right
	missed      string // not empty: why nothing is told
}

// classes are those of the MPI Bugs Initiative.
var classes = []struct {
	name string
	bugs []bug
}{
	{"Invalid parameter", parameterBugs},
	{"Request lifecycle", requestBugs},
	{"Local concurrency", localBugs},
	{"Parameter matching", matchingBugs},
	{"Call ordering", orderingBugs},
	{"Message race", raceBugs},
	{"Global concurrency", globalBugs},
	{"Buffering hazard", bufferingBugs},
}

// long is the length of a tensor that is not sent before it is received.
const long = 1 << 16

var ctx = context.Background()

func floats(n int) []float32 { return make([]float32, n) }

// outputOf returns an output for the root alone.
func outputOf(rank, root, n int) []float32 {
	if rank != root {
		return nil
	}
	return floats(n)
}

func receive(tensor []float32, from, tag int, opts ...dist.CallOption) error {
	_, err := dist.Recv(tensor, from, tag, opts...)
	return err
}

func await(w *dist.Work, err error) error {
	if err != nil {
		return err
	}
	return w.Wait(ctx)
}

// awaitBoth waits for a Work and for another that was started after it.
func awaitBoth(first *dist.Work) func(*dist.Work, error) error {
	return func(second *dist.Work, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(await(first, nil), await(second, nil))
	}
}

// beside runs f in a goroutine of its own, and returns what waits for its error.
func beside(f func() error) func() error {
	done := make(chan struct{})
	var err error
	dist.Go(func() {
		defer close(done)
		err = f()
	})
	return func() error {
		interleave.Receive(done)
		return err
	}
}

// A mistake is a kind of errors.
type mistake struct {
	name string
	in   func(error) bool
}

func is[E error]() mistake {
	return mistake{fmt.Sprintf("%T", *new(E)), func(err error) bool {
		_, ok := errors.AsType[E](err)
		return ok
	}}
}

func value(want error) mistake {
	return mistake{want.Error(), func(err error) bool { return errors.Is(err, want) }}
}

// differ is that ranks differ in a field.
func differ(field string) mistake {
	return mistake{"a mismatch of " + field, func(err error) bool {
		mismatch, ok := errors.AsType[*dist.MismatchError](err)
		return ok && mismatch.Field == field
	}}
}

// waits reports whether the erroneous program ends by its timeout.
func (b *bug) waits() bool { return b.kind.name == is[*dist.TimeoutError]().name }

// start runs a program of b as a job and returns the error of Spawn.
func (b *bug) start(program func(rank int) error, timeout time.Duration) error {
	defaults := "debug: false"
	if b.isDebugged {
		defaults = "debug: true"
	}
	cfg, err := config.Parse("ccl.yaml", []byte("version: 1\ndefaults: {"+defaults+"}\n"+
		"algorithms: {direct: {module: direct}, ring: {module: ring}}\nrules: [{algorithm: direct}]\n"))
	if err != nil {
		return err
	}
	return dist.Spawn(func(_ context.Context, rank int) error {
		nameRank(rank)
		if b.isBare {
			return program(rank)
		}
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(cfg), dist.WithTimeout(timeout)); err != nil {
			return err
		}
		if err := program(rank); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(cmp.Or(b.size, 2)))
}

// A told is what the error of a job tells about the mistake.
type told struct {
	isFound    bool // any error
	kind       bool // of the right kind
	rank       bool // names all ranks that must be named
	call       bool
	line       bool // has a line that is wrong
	distracted int  // errors of ranks that tell neither the kind nor the rank
}

// judge reads the error of a job.
func (b *bug) judge(err error) (t told) {
	t.isFound = err != nil
	lines := b.wrongLines()
	var named []int
	for _, report := range reportsOf(err) {
		names := namedBy(report.Err, report.Rank)
		if b.missed != "" || !b.kind.in(report.Err) {
			if !slices.ContainsFunc(names, func(r int) bool { return slices.Contains(b.ranks, r) }) {
				t.distracted++
			}
			continue
		}
		t.kind = true
		named = append(named, names...)
		t.call = t.call || strings.Contains(report.Error(), b.call)
		for _, call := range callsOf(report.Err) {
			t.call = t.call || call.Operation == b.call
		}
		for _, line := range lines {
			t.line = t.line || strings.Contains(report.Error(), "seeds/"+line)
		}
	}
	t.rank = t.kind && !slices.ContainsFunc(b.ranks, func(r int) bool { return !slices.Contains(named, r) })
	return t
}

// reportsOf returns the errors of the ranks.
func reportsOf(err error) (reports []*dist.RankError) {
	switch e := err.(type) {
	case *dist.RankError:
		return []*dist.RankError{e}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			reports = append(reports, reportsOf(inner)...)
		}
	}
	return reports
}

// callsOf returns all *dist.CallErrors in err.
func callsOf(err error) (calls []*dist.CallError) {
	if call, ok := err.(*dist.CallError); ok {
		calls = append(calls, call)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		calls = append(calls, callsOf(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			calls = append(calls, callsOf(inner)...)
		}
	}
	return calls
}

// namedBy returns the ranks of the job that the error of a rank names. A call that did not run
// blames the rank that made it.
func namedBy(err error, caller int) (ranks []int) {
	var failed *dist.CollectiveFailedError
	if call, ok := errors.AsType[*dist.CallError](err); ok {
		failed, _ = call.Err.(*dist.CollectiveFailedError)
	} else if lost, ok := errors.AsType[*dist.PeerLostError](err); ok {
		return []int{lost.Rank}
	}
	if failed == nil {
		return []int{caller}
	}

	ranks = []int{failed.Peer, failed.Awaited}
	switch cause := failed.Err.(type) {
	case *dist.MismatchError:
		for _, v := range cause.Values {
			ranks = append(ranks, v.Ranks...)
		}
	case *dist.TimeoutError:
		ranks = append(slices.Concat(ranks, cause.Missing, cause.Behind, cause.Waiting), cause.By)
	case *dist.PeerLostError:
		ranks = append(ranks, cause.Rank)
	case *dist.AbortedError:
		ranks = append(ranks, cause.By)
	}
	for i, r := range ranks {
		if r >= 0 && r < len(failed.GlobalRanks) {
			ranks[i] = failed.GlobalRanks[r]
		}
	}
	if aborted, ok := failed.Err.(*dist.AbortedError); ok {
		ranks = append(ranks, namedBy(aborted.Cause, -1)...)
	}
	return ranks
}

// wrongLines returns the lines of b's erroneous program that are marked as wrong, as file:line.
func (b *bug) wrongLines() (lines []string) {
	f := runtime.FuncForPC(reflect.ValueOf(b.wrong).Pointer())
	name, first := f.FileLine(f.Entry())
	file := filepath.Base(name)
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}

	last := first
	ast.Inspect(tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && fset.Position(lit.Pos()).Line == first {
			last = fset.Position(lit.End()).Line
		}
		return true
	})
	for _, group := range tree.Comments {
		for _, c := range group.List {
			if line := fset.Position(c.Pos()).Line; c.Text == "// wrong" && first <= line && line <= last {
				lines = append(lines, fmt.Sprintf("%s:%d", file, line))
			}
		}
	}
	return lines
}

// Each erroneous program is told, and each twin is silent. Those that end by their timeouts run at
// the same time.
func TestBugs(t *testing.T) {
	for _, class := range classes {
		waiting := make([]chan error, len(class.bugs))
		for i := range class.bugs {
			if b := &class.bugs[i]; b.waits() && isChosen(i) {
				waiting[i] = make(chan error, 1)
				go func() { waiting[i] <- b.start(b.wrong, 3*time.Second) }()
			}
		}

		for i := range class.bugs {
			b := &class.bugs[i]
			if !isChosen(i) {
				continue
			}
			t.Run(class.name+"/"+b.name, func(t *testing.T) {
				if err := b.start(b.right, time.Minute); err != nil {
					t.Errorf("the twin: %v", err)
				}
				var err error
				if waiting[i] != nil {
					err = <-waiting[i]
				} else {
					err = b.start(b.wrong, time.Minute)
				}
				if err := b.complaint(b.judge(err), err); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// isChosen leaves out most programs of a class from short tests.
func isChosen(i int) bool { return !testing.Short() || i%16 == 0 }

// complaint returns what is wrong with what an erroneous program's error tells.
func (b *bug) complaint(got told, err error) error {
	switch {
	case b.missed != "" && err != nil:
		return fmt.Errorf("it is told, though %s: %w", b.missed, err)
	case b.missed != "" || err == nil && b.isSometimes || got.kind && got.rank:
		return nil
	case err == nil:
		return errors.New("it is not told")
	}
	return fmt.Errorf("it is told badly, %+v: %w", got, err)
}
