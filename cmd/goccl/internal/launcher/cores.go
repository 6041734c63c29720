package launcher

import (
	"fmt"
	"strconv"
	"strings"
)

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

// formatCores and parseCores pass a share to the rank's process.
func formatCores(cores []int) string {
	words := make([]string, len(cores))
	for i, c := range cores {
		words[i] = strconv.Itoa(c)
	}
	return strings.Join(words, ",")
}

func parseCores(text string) (cores []int, err error) {
	for _, word := range strings.Split(text, ",") {
		c, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		cores = append(cores, c)
	}
	return cores, nil
}
