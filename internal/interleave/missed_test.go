//go:build interleave

package interleave

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a goroutine that waits has missed is named by the lines of both, for a word, for what a lock
// guards, and for a word that processes share.
func TestMissed(t *testing.T) {
	wait := make(chan struct{})
	for name, ranks := range map[string]func() (waits, writes func()){
		"word.Store(1)": func() (waits, writes func()) {
			var word Uint32
			return func() {
				if word.Load() == 0 {
					Receive(wait)
				}
			}, func() { word.Store(1) }
		},

		"lock.Lock() // writes": func() (waits, writes func()) {
			var lock Mutex
			n := 0
			return func() {
					lock.Lock()
					isWanted := n == 0
					lock.Unlock()
					if isWanted {
						Receive(wait)
					}
				}, func() {
					lock.Lock() // writes
					n++
					lock.Unlock()
				}
		},

		"shared.Store(1)": func() (waits, writes func()) {
			var shared Uint32
			return func() { FutexWait(&shared, 0, 7, 1<<62); Receive(wait) }, func() { shared.Store(1) }
		},
	} {
		found := 0
		for seed := range uint64(50) {
			r := Run(t, Options{Seed: seed, IsTraced: true}, func() {
				var g WaitGroup
				waits, writes := ranks()
				g.Go(func() { SetLabel("rank 0"); waits() })
				g.Go(func() { SetLabel("rank 1"); writes() })
				g.Wait()
			})
			if r.Finding != nil && r.Finding.Text != "" {
				found++
				require.Equal(t, Standstill, r.Finding.Kind)
				require.Regexp(t, `^goroutine \d of rank 0 has not seen what goroutine \d of rank 1 has written at interleave/missed_test.go:\d+ `, r.Finding.Text)
				require.Contains(t, r.Finding.Text, name)
			}
		}
		require.Greater(t, found, 5, name)
	}
}

// Goroutines that wait for each other have missed nothing.
func TestNothingMissed(t *testing.T) {
	var a, b Uint32
	r := Run(t, Options{Seed: 1, IsTraced: true}, func() {
		var g WaitGroup
		for i, wait := range []chan struct{}{make(chan struct{}), make(chan struct{})} {
			g.Go(func() {
				SetLabel([]string{"rank 0", "rank 1"}[i])
				a.Load()
				b.Load()
				Receive(wait)
			})
		}
		g.Wait()
	})
	require.Equal(t, Standstill, r.Finding.Kind)
	require.Empty(t, r.Finding.Text)
}
