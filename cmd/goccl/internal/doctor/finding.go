package doctor

import (
	"fmt"
	"slices"
)

// Verdict says what follows from a Finding.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Note    Verdict = "note"    // it makes ranks slow, or is good to know
	Problem Verdict = "problem" // it keeps ranks, as goroutines or as processes, from working
)

// Finding is one thing that was found.
type Finding struct {
	Part    string  `json:"part"` // of what it is about: one of Parts
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Says    string  `json:"says"`
	Do      string  `json:"do,omitempty"` // what to do about it
}

// The parts of an examination.
const (
	PartMachine       = "machine"
	PartProcesses     = "ranks as processes"
	PartConfiguration = "launcher and configuration"
	PartYardsticks    = "yardsticks"
)

// Parts returns the parts in their order.
func Parts() []string {
	return []string{PartMachine, PartProcesses, PartConfiguration, PartYardsticks}
}

// Count returns how many of the findings have a verdict.
func Count(findings []Finding, v Verdict) (n int) {
	for _, f := range findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

func ok(part, name, says string, a ...any) Finding {
	return Finding{Part: part, Name: name, Verdict: OK, Says: fmt.Sprintf(says, a...)}
}

// but returns the finding with another verdict, and what to do.
func (f Finding) but(v Verdict, do string) Finding {
	f.Verdict, f.Do = v, do
	return f
}

func hasProblem(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Verdict == Problem })
}

// Amount writes a number of bytes so that people can read it.
func Amount(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for len(units) > 1 && bytes >= 1024 {
		bytes /= 1024
		units = units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%.0f B", bytes)
	}
	return fmt.Sprintf("%.1f %s", bytes, units[0])
}
