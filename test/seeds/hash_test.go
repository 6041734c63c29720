//go:build interleave

package seeds

import (
	"runtime"
	"slices"
	"testing"
)

// hashes has, by kind, the hash over all choices in the jobs of seeds 1 to hashed.
var hashes = map[string]uint64{
	"departures": 0xe886fc839c6af637,
	"orders":     0xd86c8a5381380776,
	"programs":   0xa502e01072ced1e8,
	"faults":     0x6bf1260f7eb21e18,
	"operators":  0xcad8fffde469731a,
	"spawn":      0x7136a828ccceb61c,
	"training":   0x8c8893c0f00d8a07,
	"processes":  0x54e67298a7654f04,
	"bugs":       0x23096e9eaa0595e5,
	"packets":    0xbd44c783b02382d4,
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
