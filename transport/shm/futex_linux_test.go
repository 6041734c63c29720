package shm

import (
	"fmt"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// No wake is lost: a sleeping rank wakes when its peers arrive, not only when its sleep times out.
func TestNoWakeIsLost(t *testing.T) {
	defer func(old time.Duration) { maxSleep = old }(maxSleep)
	maxSleep = time.Hour
	const (
		ranks  = 4
		rounds = 20000
	)
	s := alone(t, ranks*groupsync.StateBytes)
	var states []*groupsync.State
	for r := range ranks {
		states = append(states, at[groupsync.State](s.arena, r*groupsync.StateBytes))
	}
	p := &processes{segment: s, tokens: groupsync.Tokens(states)}
	var arrived, released interleave.Int64
	wait := func(rank int, word *interleave.Int64, target int64) {
		for word.Load() < target {
			p.Sleep(rank, nil)
		}
	}
	done := make(chan struct{}, ranks)
	go func() {
		for i := range int64(rounds) {
			wait(0, &arrived, (ranks-1)*(i+1))
			released.Store(i + 1)
			for r := 1; r < ranks; r++ {
				p.Wake(r)
			}
		}
		done <- struct{}{}
	}()
	for r := 1; r < ranks; r++ {
		go func() {
			for i := range int64(rounds) {
				arrived.Add(1)
				p.Wake(0)
				wait(r, &released, i+1)
			}
			done <- struct{}{}
		}()
	}
	// The ranks must wake before the test unmaps the memory on which they sleep.
	defer time.AfterFunc(time.Minute, func() {
		panic(fmt.Sprintf("a wake was lost after %d of %d rounds, in which %d of %d have arrived",
			released.Load(), rounds, arrived.Load()-released.Load()*(ranks-1), ranks-1))
	}).Stop()
	for range ranks {
		<-done
	}
}
