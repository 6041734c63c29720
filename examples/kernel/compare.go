package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// lengths of the vectors that are summed, in float32.
var lengths = []int{1, 256, 4 << 10, 256 << 10}

// measurements are the times that one rank has measured.
type measurements struct {
	took   [][][]time.Duration // by length, entry and call
	chosen []string            // by length: the entry that the rules of ccl.yaml choose
}

// compare runs on every rank. It alternates between the entries, so that other load on the
// machine disturbs all of them equally.
func compare(entries []string, times int) (*measurements, error) {
	group, err := dist.Default()
	if err != nil {
		return nil, err
	}

	m := &measurements{}
	for _, n := range lengths {
		took := make([][]time.Duration, len(entries))
		for range times {
			for i, entry := range entries {
				t, _, err := call(group, n, dist.WithCallAlgorithm(entry))
				if err != nil {
					return nil, fmt.Errorf("%s, %d elements: %w", entry, n, err)
				}

				took[i] = append(took[i], t)
			}
		}
		m.took = append(m.took, took)

		_, chosen, err := call(group, n)
		if err != nil {
			return nil, err
		}
		m.chosen = append(m.chosen, chosen)
	}
	return m, nil
}

// call makes one all-reduce of n elements, checks it, and returns its time on this rank and
// the entry that did it. All ranks start together, on inputs that they have just written,
// and none continues before all have finished: with more ranks than cores its other work
// would be timed as well.
func call(group *dist.ProcessGroup, n int, opts ...dist.CallOption) (took time.Duration, entry string, err error) {
	rank, size := group.Rank(), group.Size()
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rank + i%7)
	}

	if err := dist.Barrier(); err != nil {
		return 0, "", err
	}
	start := time.Now()
	if err := dist.AllReduce(x, dist.Sum, opts...); err != nil {
		return 0, "", err
	}
	took = time.Since(start)
	entry = group.Communicator().LastChoice().Entry
	if err := dist.Barrier(); err != nil {
		return 0, "", err
	}

	for i, got := range x {
		if want := float32(size*(size-1)/2 + size*(i%7)); got != want {
			return 0, "", fmt.Errorf("element %d is %v instead of %v", i, got, want)
		}
	}
	return took, entry, nil
}

// printTable prints the median of each entry at each length. The time of a call is the time
// on its slowest rank.
func printTable(out io.Writer, entries []string, all []*measurements) error {
	fmt.Fprintf(out, "all_reduce of float32 on %d ranks, median in microseconds\n\n", len(all))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "bytes\t")
	for _, entry := range entries {
		fmt.Fprintf(w, "%s\t", entry)
	}

	fmt.Fprintln(w, "   chosen\t")
	for i, n := range lengths {
		fmt.Fprintf(w, "%v\t", ccl.ByteSize(4*n))

		for k := range entries {
			slowest := slices.Clone(all[0].took[i][k])
			for _, m := range all {
				for c, t := range m.took[i][k] {
					slowest[c] = max(slowest[c], t)
				}
			}
			slices.Sort(slowest)
			fmt.Fprintf(w, "%.1f\t", float64(slowest[len(slowest)/2].Nanoseconds())/1e3)
		}

		fmt.Fprintf(w, "%s\t\n", all[0].chosen[i])
	}
	return w.Flush()
}
