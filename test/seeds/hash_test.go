//go:build interleave

package seeds

import (
	"runtime"
	"slices"
	"testing"
)

// hashes has, by kind, the hash over all choices in the jobs of seeds 1 to hashed.
var hashes = map[string]uint64{
	"departures": 0x3386a27c005de51b,
	"orders":     0xd808a6a89a52337b,
	"programs":   0x6e025042ae93cab7,
	"faults":     0x860ae1a3b82a8ce1,
	"operators":  0x9f7fe8976d9150bf,
}

const hashed = 25

// A seed makes the same choices in each process and on each machine, and whatever ran before in the
// process.
func TestHash(t *testing.T) {
	for _, k := range kinds {
		want, ok := hashes[k.name]
		if !ok {
			continue
		}
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
