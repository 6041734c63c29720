package ddp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// stepsHint is the hint of errors of ranks that wait for each other in several groups.
const stepsHint = "; all ranks make the same calls of a Reducer, and of several in one order: steps, Save, Load, Verify; " +
	"ranks that have fewer steps train within Join"

// checkpointHint is that of errors of ranks that save alone.
const checkpointHint = "; all ranks call Save, and all call Load, between the same steps; ranks that have fewer train within Join"

// elsewhere has works in which ranks wait for others that are elsewhere, each with a check of what its first two ranks
// say, in two lines, and of what its last says.
var elsewhere = map[string]func(t *testing.T, first, last string){
	// A rank that is out of data, and does not train within Join, is told what the others do in the meantime.
	"out of data": func(t *testing.T, _, last string) {
		t.Helper()
		require.Regexp(t, `timed out after 2s: waited for ranks? [^;]*, which did not make call \d+ \(to wait longer[^;]*\); `+
			`ranks? [^;]* last made call \d+, new_group "ddp", and (is|are) in call \d+, all_reduce "bucket 0" of 1 float32 by direct `+
			`on group "ddp" of ranks [^;]*, made by new_group, call \d+`+stepsHint, last)
	},
	// The others are told what the rank does, at least the one that gives up first.
	"waits for rank out of data": func(t *testing.T, first, _ string) {
		t.Helper()
		require.Regexp(t, `(?m)^ddp: bucket 0 \(w\): all_reduce "bucket 0" of 1 float32 by direct, call \d+ on group "ddp" of ranks .*: waited for rank \d, which did not make call \d+`+
			`.*; rank \d last made call \d+, all_reduce "bucket 0" of 1 float32 by direct, and is in call \d+, all_reduce "loss" of 1 float32 by direct `+
			`on the default group`+stepsHint, first)
	},
	// The rank may also have closed its Reducer.
	"closes out of data": func(t *testing.T, first, _ string) {
		t.Helper()
		require.Regexp(t, `peer lost: (rank \d has left the group; rank \d last made call \d+, all_reduce "bucket 0" of 1 float32 by direct`+
			`|rank \d \(pid \d+\) is gone; rank \d last made call \d+, all_reduce "bucket 0" of 1 float32 by direct, and left the group).*`+stepsHint, first)
		require.NotRegexp(t, "has left the group;[^;]*and left the group", first)
	},
	// Ranks that wait for two Reducers in different orders are told the names of both.
	"reducers in two orders": func(t *testing.T, first, last string) {
		t.Helper()
		const pattern = `call \d+ on group "%s" of ranks [^;]*; rank.* call \d+, all_reduce "bucket 0" of 1 float32 by direct on group "%s" of ranks .*`
		require.Regexp(t, fmt.Sprintf(pattern+stepsHint+"|"+pattern+stepsHint, "generator", "critic", "critic", "generator"), first+"\n"+last)
	},
	// A rank that saves alone is told that all ranks do, whether the others do nothing, a step, or a call of another group.
	"saves alone": func(t *testing.T, first, last string) {
		t.Helper()
		require.Regexp(t, `ddp: barrier "ddp.Save", call \d+ at LINE on group "ddp" of .*: waited for [^;]*, which did not make call \d+ \(to wait longer[^;]*\); [^;]*`+checkpointHint, first)
		require.Contains(t, last, "aborted by rank 0")
	},
	"saves beside a step": func(t *testing.T, first, last string) {
		t.Helper()
		for _, text := range []string{first, last} {
			require.Contains(t, text, `ranks disagree on collective: barrier on rank 0; all_reduce on ranks 1, 2`)
			require.Contains(t, text, checkpointHint)
		}
		require.True(t, strings.HasPrefix(last, "ddp: bucket 0 (w): "), last)
	},
	"saves beside a call": func(t *testing.T, first, _ string) {
		t.Helper()
		require.Regexp(t, `barrier "ddp.Save", call \d+ at LINE on group "ddp" of .*; ranks? [^;]* in call \d+, all_reduce "loss" of 1 float32 by direct on the default group`+stepsHint, first)
	},
}

// Errors say what the ranks do that were waited for, on goroutines and on processes. The works take as long as their
// timeouts, so they run beside each other.
func TestRanksElsewhere(t *testing.T) {
	const timeout, ranks = "GOCCL_TIMEOUT", 3
	t.Setenv(timeout, "5s")
	var mu sync.Mutex
	found := map[string][]outcome{}
	var running sync.WaitGroup
	for name := range elsewhere {
		for kind := range kinds() {
			running.Go(func() {
				var all []outcome
				if kind == "processes" {
					all = startProcesses(t, name, ranks, timeout+"=5s")
				} else {
					all = onGoroutines(t, name, ranks)
				}
				mu.Lock()
				defer mu.Unlock()
				found[name+" on "+kind] = all
			})
		}
	}
	running.Wait()
	lines := regexp.MustCompile(`\S+\.go:\d+`)
	for name, check := range elsewhere {
		for kind := range kinds() {
			t.Run(name+" on "+kind, func(t *testing.T) {
				all := found[name+" on "+kind]
				require.Len(t, all, ranks)
				check(t, lines.ReplaceAllString(all[0].Err+"\n"+all[1].Err, "LINE"), lines.ReplaceAllString(all[ranks-1].Err, "LINE"))
			})
		}
	}
}

// trainer makes a Reducer with a parameter.
func trainer(name string) (*ddp.Reducer, error) {
	return ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", []float32{1}, nil)}, ddp.Options{Name: name})
}

// train makes steps of a Reducer of trainer.
func train(r *ddp.Reducer, steps int) error {
	for range steps {
		r.Ready(0)
		if err := r.Wait(bg); err != nil {
			return err
		}
	}
	return nil
}

var forEver = dist.WithCallTimeout(-1)

// loss is the call of a program after its loop.
func loss(opts ...dist.CallOption) error {
	return dist.AllReduce([]float32{1}, dist.Avg, append(opts, dist.WithLabel("loss"))...)
}

// thenOutOfData returns a work in which the last rank has a step less than the others, and then does something else.
func thenOutOfData(then func(r *ddp.Reducer) error) work {
	return func(rank, ranks int, _ *outcome) error {
		r, err := trainer("")
		if err != nil {
			return err
		}
		if err := train(r, 3); err != nil {
			return err
		}
		if rank < ranks-1 {
			if err := train(r, 1); err != nil {
				return err
			}
		}
		return then(r)
	}
}

func impatientLoss(*ddp.Reducer) error { return loss(dist.WithCallTimeout(2 * time.Second)) }
func patientLoss(*ddp.Reducer) error   { return loss(forEver) }

func closeThenLoss(r *ddp.Reducer) error {
	if err := r.Close(); err != nil {
		return err
	}
	return patientLoss(r)
}

func reducersInTwoOrders(rank, _ int, _ *outcome) error {
	first, err := trainer("generator")
	if err != nil {
		return err
	}
	second, err := trainer("critic")
	if err != nil {
		return err
	}
	if rank == 0 {
		first, second = second, first
	}
	return errors.Join(train(first, 1), train(second, 1))
}

// saving returns a work in which rank 0 saves while the others do something else.
func saving(others func(r *ddp.Reducer) error) work {
	return func(rank, ranks int, _ *outcome) error {
		r, err := trainer("")
		if err != nil {
			return err
		}
		if rank > 0 {
			return others(r)
		}
		return r.Save(bg, filepath.Join(os.TempDir(), fmt.Sprint("never-written-by-", ranks)), nil)
	}
}

func awaitMessage(*ddp.Reducer) error {
	_, err := dist.Recv([]float32{0}, 0, 0, forEver)
	return err
}

func aStep(r *ddp.Reducer) error { return train(r, 1) }
