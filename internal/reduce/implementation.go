package reduce

//go:generate go -C _gen run . ..

// An implementation is a set of loops. All give the same bits, except in a NaN.
type implementation uint8

const (
	plain  implementation = iota // the loops in Go
	avx2                         // assembly, and loops in Go for the rest
	avx512                       // the same, with AVX-512 for bfloat16
)

// best is what this machine reduces with.
var best = supported[len(supported)-1]

// Implementation returns the name of the loops with which this program reduces on this
// machine: "AVX2 and AVX-512" or "AVX2", both in assembly, or "Go".
func Implementation() string {
	return [...]string{plain: "Go", avx2: "AVX2", avx512: "AVX2 and AVX-512"}[best]
}
