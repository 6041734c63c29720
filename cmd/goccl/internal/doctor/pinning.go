package doctor

import (
	"cmp"
	"fmt"

	"github.com/goccl/goccl/internal/cores"
)

// Pinning returns a finding about the cores that a job of `goccl run` would get now. Its
// arguments are the results of cores.Survey.
func Pinning(m cores.Machine, err error) Finding {
	if err != nil {
		return ok(PartProcesses, "pinning", "%v", err).with(Note, "")
	}
	says := "goccl run pins no ranks"
	if n := m.Ranks(); n > 1 {
		says = fmt.Sprintf("goccl run pins up to %d ranks", n)
	}

	says += "; free cores: " + described(m.Free)
	if len(m.Held) > 0 {
		says += "; other jobs hold " + described(m.Held)
	}
	if m.Quota.File != "" {
		says += fmt.Sprintf("; quota of %.4g cores", m.Quota.Value)
	}
	if m.Uneven {
		says += "; some of them are faster than others"
	}

	f := ok(PartProcesses, "pinning", "%s", says)
	switch {
	case m.Uneven:
		return f.with(Note, "to pin nevertheless, goccl run --pin=on")
	case len(m.Held) > 0:
		return f.with(Note, "wait for those jobs, or start each job on cores of its own (taskset)")
	}
	return f
}

// described lists cores: 0-3, or 4 with hyperthreads 0-7.
func described(all []cores.Core) string {
	cpus := cores.CPUs(all)
	list := cmp.Or(cores.Format(cpus), "none")
	if len(cpus) > len(all) {
		return fmt.Sprintf("%d with hyperthreads %s", len(all), list)
	}
	return list
}
