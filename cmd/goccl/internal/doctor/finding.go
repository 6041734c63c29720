package doctor

import "fmt"

// Verdict is the conclusion of a Finding.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Note    Verdict = "note"    // slow, or good to know
	Problem Verdict = "problem" // keeps ranks, as goroutines or as processes, from working
)

// Finding is one result.
type Finding struct {
	Part    string  `json:"part"` // one of those below
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Says    string  `json:"says"`
	Do      string  `json:"do,omitempty"` // the remedy
}

// The parts of an examination.
const (
	PartMachine       = "machine"
	PartProcesses     = "ranks as processes"
	PartConfiguration = "launcher and configuration"
	PartYardsticks    = "yardsticks"
	PartNodes         = "nodes"
)

// Count returns the number of findings with a verdict.
func Count(findings []Finding, v Verdict) (n int) {
	for _, f := range findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// ok returns a finding that calls for nothing.
func ok(part, name, says string, a ...any) Finding {
	return Finding{Part: part, Name: name, Verdict: OK, Says: fmt.Sprintf(says, a...)}
}

// with returns the finding with another verdict and a remedy.
func (f Finding) with(v Verdict, remedy string) Finding {
	f.Verdict, f.Do = v, remedy
	return f
}

// Amount formats a number of bytes.
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
