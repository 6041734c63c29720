//go:build interleave && linux

package seeds

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport/shm"
)

// A process that cannot join, for want of memory, is named by all others, also if one that passes
// the reason on stands still while it does so. If that is killed, it may be named instead.
func TestReasonIsToldThoughWhoTellsItStops(t *testing.T) {
	const ranks, unable, stopped = 4, 3, 1
	for how, stop := range map[string]func(){
		"stalls": func() { interleave.Stall(label(stopped), 300*time.Millisecond) },
		"is killed": func() {
			interleave.Kill(label(stopped))
			interleave.Sleep(time.Millisecond)
			shm.Bury(label(stopped))
		},
	} {
		t.Run(how, func(t *testing.T) {
			for seed := range uint64(1000) {
				step := 190 + int(seed%50)
				simulateProcesses(t, 1)
				errs, hasEnded := make([]error, ranks), make([]bool, ranks)
				r := interleave.Run(t, interleave.Options{Seed: seed}, func() {
					shm.Exhaust(label(unable), 2, 3)
					var end interleave.WaitGroup
					end.Add(ranks)
					leave := func(rank int) {
						if !hasEnded[rank] {
							hasEnded[rank] = true
							end.Done()
						}
					}
					interleave.At(1+step, func() {
						if hasEnded[stopped] {
							return
						}
						if stop(); how == "is killed" {
							leave(stopped)
						}
					})
					for rank := range ranks {
						interleave.Go(func() {
							interleave.SetLabel(label(rank))
							within, cancel := interleave.WithTimeout(context.Background(), time.Minute)
							defer cancel()
							ep, err := shm.Join(within, shm.Job{Name: "job", Rank: rank, Size: ranks})
							if errs[rank] = err; err == nil {
								_ = ep.Close()
								_ = ep.Free()
							}
							leave(rank)
						})
					}
					end.Wait()
				})
				left := shm.EndSimulation(func(string) bool { return how == "is killed" })
				if _, err := removeFiles(); r.Finding != nil || left != nil || err != nil {
					t.Fatalf("step %d: %v, %v, %v", step, r.Finding, left, err)
				}
				for rank, err := range errs {
					named := namedRanks(err)
					isOwn := rank == unable && isOfShortage(err) || rank == stopped
					if err != nil && !isOwn && !slices.Contains(named, unable) && !(how == "is killed" && len(named) > 0) {
						t.Errorf("seed %d, step %d, rank %d: %v", seed, step, rank, err)
					}
				}
			}
		})
	}
}
