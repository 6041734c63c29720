package launcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/text"
)

// Location is where a rank was that others waited for.
type Location struct {
	Rank int
	// Stopped is whether a signal or a debugger had stopped it. Then it shows nothing else.
	Stopped bool
	// Goroutines are those in the program's own code: first the one that runs the rank's worker, or
	// the program's first. If there is none it is the first of all. Those without frames were
	// running, and one may be the worker's: they come first where its place is not known.
	Goroutines []launchenv.Goroutine
}

// locate returns where a rank was by its stacks, and whether they show it.
func locate(rank int, stacks []launchenv.Goroutine) (at Location, ok bool) {
	const worker, first, running, other, foreign = 0, 1, 2, 3, 4
	kind := func(g launchenv.Goroutine) int {
		spawns := func(f launchenv.Frame) bool { return f.Function == "github.com/goccl/goccl/dist.Spawn" }

		switch {
		case g.Number != 0 && len(g.Frames) == 0 && strings.HasPrefix(g.State, "running"):
			return running
		case !slices.ContainsFunc(g.Frames, launchenv.Frame.IsOwn) || slices.ContainsFunc(g.Frames, spawns):
			return foreign
		case g.IsWorker():
			return worker
		case g.Number == 1:
			return first
		}
		return other
	}

	shown := slices.DeleteFunc(slices.Clone(stacks), func(g launchenv.Goroutine) bool { return kind(g) == foreign })
	slices.SortStableFunc(shown, func(a, b launchenv.Goroutine) int { return kind(a) - kind(b) })
	if len(shown) > 0 && kind(shown[0]) < running {
		shown = slices.DeleteFunc(shown, func(g launchenv.Goroutine) bool { return kind(g) == running })
	}
	if len(shown) == 0 {
		// Number 0 is the runtime's own.
		shown = slices.DeleteFunc(slices.Clone(stacks), func(g launchenv.Goroutine) bool { return g.Number == 0 || len(g.Frames) == 0 })
		shown = shown[:min(1, len(shown))]
	}
	return Location{Rank: rank, Goroutines: shown}, len(shown) > 0
}

// notStopped is where a goroutine was whose thread has not stopped in time for the runtime to show
// its stack, as on cores that have much to do.
const notStopped = "running (the Go runtime could not stop it in time to show where)"

// Limits of the locations of several ranks, and of the goroutines of one, that are shown.
const (
	locationsShown  = 4
	goroutinesShown = 4
)

// writeLocations writes the locations of ranks: ranks at the same place together, the first
// goroutine with its functions, the others with the innermost.
func writeLocations(b *strings.Builder, locations []Location) {
	var texts []string
	ranks := make(map[string][]int)
	for _, p := range locations {
		text := p.text()
		if ranks[text] == nil {
			texts = append(texts, text)
		}
		ranks[text] = append(ranks[text], p.Rank)
	}

	for _, location := range texts[:min(len(texts), locationsShown)] {
		was := "was"
		if len(ranks[location]) > 1 {
			was = "were"
		}
		fmt.Fprintf(b, "\n  %s %s %s", text.Ranks(ranks[location]), was, location)
	}
	if more := len(texts) - locationsShown; more > 0 {
		fmt.Fprintf(b, "\n  and %d more places", more)
	}
}

// text follows "rank 2 was ".
func (p Location) text() string {
	if p.Stopped {
		return "stopped, by SIGSTOP, SIGTTIN (it read the terminal) or a debugger"
	}

	var b strings.Builder
	if inner := p.Goroutines[0]; len(inner.Frames) > 0 {
		fmt.Fprintf(&b, "here (%s):", inner.State)
		writeFrames(&b, launchenv.OwnFrames(inner.Frames))
	} else {
		b.WriteString(notStopped)
	}

	others := p.Goroutines[1:]
	for _, g := range others[:min(len(others), goroutinesShown-1)] {
		if len(g.Frames) > 0 {
			fmt.Fprintf(&b, "\n    another goroutine (%s): in %v", g.State, launchenv.OwnFrames(g.Frames)[0])
		} else {
			b.WriteString("\n    another goroutine was " + notStopped)
		}
	}
	if more := len(others) - (goroutinesShown - 1); more > 0 {
		fmt.Fprintf(&b, "\n    and %d more goroutines", more)
	}
	return b.String()
}
