// Package program is what the measuring programs of goccl share: how they start and end, how many
// rounds they make, and on which cores their ranks run.
//
// # Model
//
// A program has the ranks that its command line says: goroutines if it is started by itself,
// processes under a launcher. A round is one timed operation, which all ranks begin together. The
// cores of a rank are what the system allows its process, which goccl run may have pinned.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// Main runs a program until it ends, or until an interrupt or SIGTERM ends the context.
func Main(command func(ctx context.Context, args []string, stdout, stderr io.Writer) (status int)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// Run runs measure on every rank with the built-in configuration, and returns the exit status. The
// writer of rank 0 is stdout, that of the others discards.
func Run(ctx context.Context, name string, ranks int, stdout, stderr io.Writer, measure func(rank int, out io.Writer) error) (status int) {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(config.Default())); err != nil {
			return err
		}
		out := stdout
		if rank != 0 {
			out = io.Discard
		}

		if err := measure(rank, out); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(ranks), dist.WithSpawnContext(ctx))
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Rounds of a measurement.
const (
	MinRounds = 5 // at least
	warmUp    = 3 // that are not counted
)

// FitRounds returns how many rounds fit into the budget by the fastest of a few, at least MinRounds
// and at most limit. share makes the number of rank 0 that of all ranks.
func FitRounds(budget time.Duration, limit int64, round func(i int) error, share func(rounds []int64) error) (int64, error) {
	fastest := budget
	for i := range warmUp {
		start := time.Now()
		if err := round(i); err != nil {
			return 0, err
		}
		fastest = min(fastest, time.Since(start))
	}

	rounds := []int64{min(max(MinRounds, int64(budget/fastest)), limit)}
	err := share(rounds)
	return rounds[0], err
}

// ShareFirst copies the numbers of rank 0 to those of all ranks.
func ShareFirst(numbers []int64) error { return dist.Broadcast(numbers, 0) }

// TimeTogether returns how long f takes on this rank, which begins it with all others.
func TimeTogether(f func() error) (time.Duration, error) {
	barriers := errors.Join(dist.Barrier(), dist.Barrier())
	start := time.Now()
	err := f()
	took := time.Since(start)
	return took, errors.Join(barriers, err, dist.Barrier())
}

// CoresOfRanks returns the cores that each rank may use, "0|1", or "" if the system does not show
// them. All ranks call it.
func CoresOfRanks() (string, error) {
	cores := ""
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, after, _ := strings.Cut(string(status), "\nCpus_allowed_list:")
		cores, _, _ = strings.Cut(strings.TrimSpace(after), "\n")
	}
	all, err := dist.AllGatherObject(cores)
	if err != nil || cores == "" {
		return "", err
	}
	return strings.Join(all, "|"), nil
}

// Arguments reads the words of a command line. Err has all that make no sense.
type Arguments struct{ Err error }

// Whole returns a whole number from least.
func (a *Arguments) Whole(name, text string, least int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		a.Err = errors.Join(a.Err, fmt.Errorf("%s is %q, want a whole number from %d", name, text, least))
	}
	return n
}

// Time returns a time in units, of least units or more.
func (a *Arguments) Time(name, text string, least float64, unit time.Duration) time.Duration {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= least && x < 1e9) {
		a.Err = errors.Join(a.Err, fmt.Errorf("%s is %q, want a time from %g", name, text, least))
	}
	return time.Duration(x * float64(unit))
}

// WholeNumbers returns whole numbers from least.
func (a *Arguments) WholeNumbers(name string, texts []string, least int) (all []int) {
	for _, text := range texts {
		all = append(all, a.Whole(name, text, least))
	}
	return all
}

// Line is what the command lines of goccl_allreduce and goccl_ddp begin with.
type Line struct {
	Ranks int
	Form  string // one of a few words
	table.Contestant
	Budget    time.Duration // for a row
	MaxRounds int64
}

// Line returns the first six words: RANKS, the form, LIBRARY, ENTRY, BUDGET_MS, and the most
// rounds. The form and the most rounds have names of the program's own.
func (a *Arguments) Line(words []string, form, limit string, forms ...string) Line {
	l := Line{Ranks: a.Whole("RANKS", words[0], 1), Form: words[1], Contestant: table.Contestant{Library: words[2], Entry: words[3]}}
	if !slices.Contains(forms, l.Form) {
		a.Err = errors.Join(a.Err, fmt.Errorf("%s is %q, want %s", form, l.Form, strings.Join(forms, " or ")))
	}
	l.Budget = a.Time("BUDGET_MS", words[4], 0.001, time.Millisecond)
	l.MaxRounds = int64(a.Whole(limit, words[5], 1))
	return l
}
