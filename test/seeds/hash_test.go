//go:build interleave

package seeds

import (
	"runtime"
	"slices"
	"testing"
)

// hashes has, by kind, the hash over all choices in the jobs of seeds 1 to hashed.
var hashes = map[string]uint64{
	"departures": 0x3a41c96314033316,
	"orders":     0xeb3cf87e54253faa,
	"programs":   0x9e0140b85e64a08c,
	"faults":     0x22457d05703df6a4,
	"operators":  0x790c918f59805b9b,
	"spawn":      0xa7dd64793905800a,
	"training":   0x16dcc53ebfed51da,
	"processes":  0xa47de10b5d778cbb,
	"bugs":       0xf380d7931b2eb0fe,
	"packets":    0x9499a763779e47db,
}

const hashed = 25

// A seed makes the same choices in each process and on each machine, and whatever ran before in the
// process.
func TestHash(t *testing.T) {
	for _, k := range kinds {
		want := hashes[k.name]
		t.Run(k.name, func(t *testing.T) {
			var first, again total
			one := make([]uint64, hashed)
			processors := runtime.GOMAXPROCS(1)
			for i := range one {
				one[i] = first.add(t, k, uint64(i)+1)
			}

			runtime.GOMAXPROCS(max(processors, 2))
			defer runtime.GOMAXPROCS(processors)
			for i := range slices.Backward(one) {
				if hash := again.add(t, k, uint64(i)+1); hash != one[i] {
					t.Errorf("seed %d: hash %016x on one processor and in ascending order, otherwise %016x", i+1, one[i], hash)
				}
			}
			if first.hash != want {
				t.Errorf("hash %016x, want %016x: either a seed does not choose everything, or the code under test takes other steps, which changes the number",
					first.hash, want)
			}
		})
	}
}
