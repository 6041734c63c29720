//go:build interleave && linux

package seeds

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
	"github.com/goccl/goccl/transport/tcp"
)

// formingsOfFour are ways to form groups of four ranks. In the groups of Form members wait for ranks
// that are still in an earlier one.
var formingsOfFour = map[string]func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error){
	"NewGroup": func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error) {
		made, err := c.NewGroup(ctx, []int{0, 1, 2, 3})
		return []*ccl.Communicator{made}, err
	},
	"Split": func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error) {
		made, err := c.Split(ctx, 0, -c.Rank())
		return []*ccl.Communicator{made}, err
	},
	"Form": func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error) {
		return c.Form(ctx, [][]int{{2, 1, 3}, {0, 1}, {3, 2, 1, 0}})
	},
}

// forming is a job whose ranks form groups while one of them stands still.
type forming struct {
	form    func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error)
	open    func(rank int) (transport.Endpoint, error)
	leave   func(ctx context.Context, rank int) // after all groups are closed
	stalled int
	after   int // so many steps after all have joined
	errs    [formingRanks]error
}

const formingRanks = 4

func (f *forming) run(rank int, settings *config.Settings, joined, end *interleave.WaitGroup) error {
	interleave.SetLabel(label(rank))
	bg := context.Background()
	ep, err := f.open(rank)
	if err != nil {
		return err
	}
	g, err := ccl.New(bg, ep, ccl.WithSelector(settings))
	if err != nil {
		return err
	}
	joined.Done()
	joined.Wait()
	if rank == 0 {
		interleave.At(int(interleave.Moment())+f.after, func() { interleave.Stall(label(f.stalled), 4*callTimeout) })
	}
	made, err := f.form(bg, g)
	f.errs[rank] = err
	end.Done()
	end.Wait()
	for _, c := range append(made, g) {
		_ = c.Close()
	}
	within, stop := interleave.WithTimeout(bg, time.Second)
	defer stop()
	f.leave(within, rank)
	return nil
}

// A rank that stops at any step at which a group forms is named, and no other one, by the timeout of
// those that wait for it, and gets theirs: whether these wait in the new group, in the call that makes
// it, or for one that waits itself.
func TestStalledRankIsNamedWhereGroupsForm(t *testing.T) {
	for name, form := range formingsOfFour {
		for on, steps := range map[string]int{"poll": 3, "park": 3, "processes": 37, "packets": 149} {
			t.Run(name+"/"+on, func(t *testing.T) {
				for step := 0; step < 3000; step += steps {
					stallWhileForming(t, on, &forming{form: form, stalled: step % formingRanks, after: 1 + step/formingRanks}, uint64(step))
				}
			})
		}
	}
}

// stallWhileForming runs f under a seed, on ranks that something connects.
func stallWhileForming(t *testing.T, on string, f *forming, seed uint64) {
	settings, err := processesConfig.Resolve(config.Request{Ranks: formingRanks, Timeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	simulateProcesses(t, seed)
	interleave.SetProcessors([]int{1, 8}[seed/2%2])
	failures := make([]error, formingRanks)
	r := interleave.Run(t, interleave.Options{Seed: seed, Limit: 20_000_000}, func() {
		f.connect(on, time.Duration(seed%3)*time.Millisecond)
		var joined, end, all interleave.WaitGroup
		joined.Add(formingRanks)
		end.Add(formingRanks)
		for rank := range formingRanks {
			all.Go(func() { failures[rank] = f.run(rank, settings, &joined, &end) })
		}
		all.Wait()
		interleave.Sleep(5 * callTimeout) // the rank goes on before the program ends
	})
	err = errors.Join(append(failures, shm.EndSimulation(func(string) bool { return false }))...)
	if r.Finding != nil || err != nil {
		t.Fatalf("step %d: %v, %v", seed, err, r.Finding)
	}

	for rank, err := range f.errs {
		_, isAborted := errors.AsType[*transport.AbortedError](err) // by a member that has timed out
		_, isLate := errors.AsType[*transport.TimeoutError](err)
		if err != nil && !isAborted && (!isLate || !slices.Equal(namedRanks(err), []int{f.stalled})) {
			t.Errorf("step %d, rank %d, where rank %d stands still: %v", seed, rank, f.stalled, err)
		}
	}
}

// connect prepares how ranks are connected.
func (f *forming) connect(on string, delay time.Duration) {
	f.leave = func(context.Context, int) {}
	switch on {
	case "poll", "park":
		how := map[string]local.Waiting{"poll": local.Poll, "park": local.Park}[on]
		all := local.NewWaiting(formingRanks, how)
		f.open = func(rank int) (transport.Endpoint, error) { return all[rank], nil }
	case "processes":
		f.open = func(rank int) (transport.Endpoint, error) {
			return shm.Join(context.Background(), shm.Job{Name: "forming", Rank: rank, Size: formingRanks})
		}
	case "packets":
		net := tcp.NewNet(formingRanks, delay)
		f.open, f.leave = func(rank int) (transport.Endpoint, error) { return net.Join(context.Background(), rank) }, net.Leave
	}
}
