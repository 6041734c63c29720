package launcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/text"
)

// Place is where a rank was that others waited for.
type Place struct {
	Rank int
	// Stopped is whether it was stopped, by SIGSTOP or a debugger. Then it shows nothing else.
	Stopped bool
	// Goroutines are those in the program's own code: first the one that runs the rank's worker, or the
	// program's first. If there is none it is the first of all.
	Goroutines []launchenv.Goroutine
}

// placeOf returns where a rank was by its stacks, and whether they show it.
func placeOf(rank int, stacks []launchenv.Goroutine) (p Place, ok bool) {
	const worker, first, other, none = 0, 1, 2, 3
	kind := func(g launchenv.Goroutine) int {
		spawns := func(f launchenv.Frame) bool { return f.Function == "github.com/goccl/goccl/dist.Spawn" }
		switch {
		case !slices.ContainsFunc(g.Frames, launchenv.Frame.IsOwn) || slices.ContainsFunc(g.Frames, spawns):
			return none
		case g.IsWorker():
			return worker
		case g.Number == 1:
			return first
		}
		return other
	}
	own := slices.DeleteFunc(slices.Clone(stacks), func(g launchenv.Goroutine) bool { return kind(g) == none })
	slices.SortStableFunc(own, func(a, b launchenv.Goroutine) int { return kind(a) - kind(b) })
	if len(own) == 0 {
		// Number 0 is the runtime's own.
		own = slices.DeleteFunc(slices.Clone(stacks), func(g launchenv.Goroutine) bool { return g.Number == 0 || len(g.Frames) == 0 })
		own = own[:min(1, len(own))]
	}
	return Place{Rank: rank, Goroutines: own}, len(own) > 0
}

// Limits of the places of several ranks, and of the goroutines of one, that are shown.
const (
	placesShown     = 4
	goroutinesShown = 4
)

// writePlaces writes the places of ranks: ranks at the same place together, the first goroutine with its
// functions, the others with the innermost.
func writePlaces(b *strings.Builder, places []Place) {
	var texts []string
	ranks := make(map[string][]int)
	for _, p := range places {
		text := p.text()
		if ranks[text] == nil {
			texts = append(texts, text)
		}
		ranks[text] = append(ranks[text], p.Rank)
	}
	for _, place := range texts[:min(len(texts), placesShown)] {
		was := "was"
		if len(ranks[place]) > 1 {
			was = "were"
		}
		fmt.Fprintf(b, "\n  %s %s %s", text.Ranks(ranks[place]), was, place)
	}
	if more := len(texts) - placesShown; more > 0 {
		fmt.Fprintf(b, "\n  and %d more places", more)
	}
}

// text follows "rank 2 was ".
func (p Place) text() string {
	if p.Stopped {
		return "stopped, by SIGSTOP or a debugger"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "here (%s):", p.Goroutines[0].State)
	writeFrames(&b, launchenv.OwnFrames(p.Goroutines[0].Frames))
	others := p.Goroutines[1:]
	for _, g := range others[:min(len(others), goroutinesShown-1)] {
		fmt.Fprintf(&b, "\n    another goroutine (%s): in %v", g.State, launchenv.OwnFrames(g.Frames)[0])
	}
	if more := len(others) - (goroutinesShown - 1); more > 0 {
		fmt.Fprintf(&b, "\n    and %d more goroutines", more)
	}
	return b.String()
}
