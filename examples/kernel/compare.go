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

// The entries that are compared, and the lengths of the vectors, in float32.
var (
	entries = []string{"doubling", "ring", "tree", "direct", "blocked"}
	lengths = []int{1, 256, 4 << 10, 256 << 10}
)

// table has a row for each length.
type table struct {
	micros [][]float64 // by length and entry
	chosen []string    // by length: what the rules of ccl.yaml choose
}

// compare is what every rank does: all algorithms in turns, so that whatever else
// the machine does disturbs all alike.
func compare(times int) (*table, error) {
	group, err := dist.Default()
	if err != nil {
		return nil, err
	}
	t := &table{}
	for _, n := range lengths {
		took := make([][]float64, len(entries))
		for range times {
			for i, entry := range entries {
				micros, err := call(group, n, dist.WithCallAlgorithm(entry))
				if err != nil {
					return nil, fmt.Errorf("%s, %d elements: %w", entry, n, err)
				}
				took[i] = append(took[i], micros)
			}
		}
		row := make([]float64, len(entries))
		for i := range took {
			if err := dist.AllReduce(took[i], dist.Max); err != nil { // the slowest rank's
				return nil, err
			}
			slices.Sort(took[i])
			row[i] = took[i][times/2]
		}
		t.micros = append(t.micros, row)

		if _, err := call(group, n); err != nil {
			return nil, err
		}
		choice := group.Communicator().LastChoice()
		t.chosen = append(t.chosen, fmt.Sprintf("%s, by %s", choice.Entry, choice.Why))
	}
	return t, nil
}

// call makes one all-reduce of n elements, checks it, and returns how many
// microseconds it took on this rank.
func call(group *dist.ProcessGroup, n int, opts ...dist.CallOption) (float64, error) {
	rank, size := group.Rank(), group.Size()
	x := make([]float32, n) // new in every call, so that nobody sums what is a sum already
	for i := range x {
		x[i] = float32(rank + i%7)
	}
	if err := dist.Barrier(); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := dist.AllReduce(x, dist.Sum, opts...); err != nil {
		return 0, err
	}
	took := time.Since(start)
	for i, got := range x {
		if want := float32(size*(size-1)/2 + size*(i%7)); got != want {
			return 0, fmt.Errorf("element %d is %v instead of %v", i, got, want)
		}
	}
	return float64(took.Nanoseconds()) / 1e3, nil
}

func (t *table) print(out io.Writer, ranks int) {
	fmt.Fprintf(out, "all_reduce of float32 on %d ranks, median in microseconds of the slowest rank\n\n", ranks)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "bytes\t")
	for _, entry := range entries {
		fmt.Fprintf(w, "%s\t", entry)
	}
	fmt.Fprintln(w)
	for i, n := range lengths {
		fmt.Fprintf(w, "%v\t", ccl.ByteSize(4*n))
		for _, micros := range t.micros[i] {
			fmt.Fprintf(w, "%.1f\t", micros)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintln(out, "\nleft to the rules:")
	for i, n := range lengths {
		fmt.Fprintf(out, "  %v: %s\n", ccl.ByteSize(4*n), t.chosen[i])
	}
}
