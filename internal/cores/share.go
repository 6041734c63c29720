package cores

import (
	"errors"
	"fmt"
	"slices"
)

// Ranks returns how many ranks can have a free core each, by default.
func (m Machine) Ranks() int {
	if m.Uneven {
		return 0
	}
	if m.Quota.File != "" {
		return min(len(m.Free), int(m.Quota.Value))
	}
	return len(m.Free)
}

// share divides the free cores among ranks: each gets an equal number or one more, adjacent ones.
func (m Machine) share(ranks int, insist bool) ([][]int, error) {
	if m.Quota.File != "" && float64(ranks) > m.Quota.Value {
		return nil, fmt.Errorf("%d ranks cannot have a core each: the quota of CPU time is %.4g cores (%s)", ranks, m.Quota.Value, m.Quota.File)
	}
	var units [][]int // of which each rank gets at least one
	for _, c := range m.Free {
		units = append(units, c.CPUs)
	}
	if insist && ranks > len(units) {
		units = nil

		for _, c := range m.Free {
			for _, cpu := range c.CPUs {
				units = append(units, []int{cpu})
			}
		}
	}
	if ranks > len(units) {
		return nil, m.tooFew(ranks)
	}

	if m.Uneven && !insist {
		return nil, errUneven
	}
	shares := make([][]int, ranks)
	for i := range shares {
		for _, u := range units[i*len(units)/ranks : (i+1)*len(units)/ranks] {
			shares[i] = append(shares[i], u...)
		}
		slices.Sort(shares[i])
	}
	return shares, nil
}

// errUneven: the rank with the slowest cores would determine the speed of all.
var errUneven = errors.New("some of the cores are faster than others")

// tooFew returns why ranks outnumber the free cores.
func (m Machine) tooFew(ranks int) error {
	all := slices.Concat(m.Free, m.Held)
	text := fmt.Sprintf("%d ranks cannot have a core each: this process may use %d", ranks, len(all))
	if cpus := len(CPUs(all)); cpus > len(all) {
		text += fmt.Sprintf(", with %d hyperthreads", cpus)
	}
	if len(m.Held) > 0 {
		text += fmt.Sprintf(", and other jobs of goccl run hold %d of them", len(m.Held))
	}
	return errors.New(text)
}
