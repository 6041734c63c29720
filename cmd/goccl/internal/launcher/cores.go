package launcher

import "fmt"

// shares divides cores among ranks: each gets an equal number or one more, adjacent ones.
func shares(cores []int, ranks int) ([][]int, error) {
	if ranks > len(cores) {
		return nil, fmt.Errorf("%d ranks cannot have a core each: this process may use %d", ranks, len(cores))
	}
	all := make([][]int, ranks)
	for i := range all {
		all[i] = cores[i*len(cores)/ranks : (i+1)*len(cores)/ranks]
	}
	return all, nil
}
