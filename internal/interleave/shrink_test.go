//go:build interleave

package interleave

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deep is a program that fails if two goroutines are each switched from at one certain step.
func deep() {
	var a, b, hits Int64
	var g WaitGroup
	for _, word := range []*Int64{&a, &b} {
		g.Go(func() {
			for range 20 {
				n := word.Load()
				hits.Load()
				word.Store(n + 1)
			}
		})
		g.Go(func() {
			for range 5 {
				n := word.Load()
				hits.Load()
				word.Store(n + 1)
			}
		})
	}
	g.Wait()
	if a.Load() < 25 && b.Load() < 25 {
		panic("lost")
	}
}

// The choices of a run repeat it, in their short form as well.
func TestReplay(t *testing.T) {
	for seed := range uint64(200) {
		for _, program := range []func(){deep, func() { sequential["a timer's function"]() }, func() { sequential["a group"]() }} {
			first := Run(t, Options{Seed: seed, IsRecorded: true, IsLate: seed%2 == 0}, program)
			choices, err := ParseChoices(first.Choices.String())
			require.NoError(t, err)
			again := Run(t, Options{Seed: seed, Choices: choices, IsRecorded: true}, program)
			require.Equal(t, first.Hash, again.Hash, "seed %d", seed)
			require.Equal(t, first.Steps, again.Steps)
		}
	}
}

func TestParseChoices(t *testing.T) {
	for _, text := range []string{"", "none", "12:3,57:1,80:clock,91:poll4", "0:poll0"} {
		c, err := ParseChoices(text)
		require.NoError(t, err)
		require.Equal(t, text, c.String())
	}
	for _, text := range []string{"1", "1:", ":1", "1:pole", "a:1", "1:2,", "1:2;3:4"} {
		_, err := ParseChoices(text)
		require.ErrorContains(t, err, "is no choice", text)
	}
}

// A failing run is shrunk to the few choices that it needs, and its steps are shown.
func TestShrink(t *testing.T) {
	shrunk := 0
	for seed := range uint64(20) {
		fails := func(o Options) (Result, bool) {
			r := Run(t, o, deep)
			return r, r.Finding != nil && r.Finding.Kind == Panic
		}
		o := Options{Seed: seed}
		if _, hasFailed := fails(o); !hasFailed {
			continue
		}

		few, ok := Shrink(o, 300, fails)
		require.True(t, ok)
		require.LessOrEqual(t, len(few.Choices), 6, "seed %d: %v", seed, few.Choices)
		few.IsTraced = true
		r, hasFailed := fails(few)
		require.True(t, hasFailed)
		picture := Picture(r.Trace, 30, 100)
		for _, line := range strings.Split(picture, "\n") {
			require.LessOrEqual(t, len([]rune(line)), 100)
		}
		require.Contains(t, picture, "word.Store(n + 1)")
		shrunk++
	}
	require.Greater(t, shrunk, 5)
}

func TestPicture(t *testing.T) {
	r := Run(t, Options{Choices: Choices{}, IsTraced: true}, func() {
		var n Int64
		var g WaitGroup
		for _, name := range []string{"rank 0", "rank 1"} {
			g.Go(func() {
				SetLabel(name)
				n.Add(1)
				n.Add(2)
				Sleep(time.Second)
				n.Add(3)
			})
		}
		g.Wait()
	})
	picture := Picture(r.Trace, 30, 160)
	require.Contains(t, picture, "shrink_test.go:")
	require.Regexp(t, `(?m)^1    +shrink_test.go:\d+ n.Add\(1\)`, picture)
	require.Regexp(t, `(?m)^---- the clock shows 1s$`, picture)
	t.Log("\n" + picture)
}

// count returns how many orders two goroutines have of which one takes a and the other b parts, if
// one of them goes on for as long as it can, except for at most so many preemptions.
func count(a, b, preemptions int) int {
	var from func(a, b, running, preemptions int) int
	from = func(a, b, running, preemptions int) int {
		parts := [2]int{a, b}
		if a == 0 && b == 0 {
			return 1
		}
		n := 0
		for next := range 2 {
			left := preemptions
			if next != running && parts[running] > 0 {
				left--
			}
			if parts[next] > 0 && left >= 0 {
				n += from(a-(1-next), b-next, next, left)
			}
		}
		return n
	}
	return from(a, b, 0, preemptions)
}

// Explore takes each order once.
func TestExplore(t *testing.T) {
	for preemptions := range 6 {
		hashes := map[uint64]bool{}
		orders, failed := Explore(preemptions, func(o Options) (Result, bool) {
			r := Run(t, o, func() {
				var n Int64
				Go(func() { n.Add(1); n.Add(1); n.Add(1) })
				n.Add(1)
				n.Add(1)
			})
			hashes[r.Hash] = true
			return r, r.Finding == nil
		})
		require.Nil(t, failed)
		require.Len(t, hashes, orders)
		// The program's first part ends with its step in Go, and its parts after it are three.
		require.Equal(t, count(3, 4, preemptions), orders, "%d preemptions", preemptions)
	}
}

// A lost update needs one preemption, and the order that was found makes it again.
func TestExploreFinds(t *testing.T) {
	program := func() {
		var n Int64
		var g WaitGroup
		for range 2 {
			g.Go(func() { n.Store(n.Load() + 1) })
		}
		g.Wait()
		if n.Load() < 2 {
			panic("lost")
		}
	}
	try := func(o Options) (Result, bool) {
		r := Run(t, o, program)
		return r, r.Finding == nil
	}
	_, failed := Explore(0, try)
	require.Nil(t, failed)
	_, failed = Explore(1, try)
	require.NotNil(t, failed)
	_, isRight := try(*failed)
	require.False(t, isRight)
}
